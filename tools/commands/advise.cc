// SPDX-License-Identifier: Apache-2.0
// `dynamiccl advise`: what a user can change in a recorded job today without DynamICCL, and what a step would
// then take (tools/advise). Each line of the table is one change, the predicted step, and the setting to
// write:
//
//   change                                 step ms   against   exposed    memory  how
//   stage 3 -> 2                             59.94    -0.1 %      1.19  -148.88M  --stage 2
//   prefetch true -> false                   60.53    +0.9 %      1.78   -27.04M  --no-prefetch
//
// "against" compares with the simulated step of the job as it is, "exposed" is communication that no
// computation hides, in ms, and memory is the change on one rank.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "tools/advise/advice.h"
#include "tools/advise/measured_changes.h"
#include "tools/advise/trainer_options.h"
#include "tools/command_table.h"
#include "tools/commands/given_traces.h"
#include "tools/exit_code.h"
#include "tools/launch/installation.h"
#include "tools/launch_options.h"
#include "tools/report/json_output.h"
#include "tools/report/recognised_labels.h"
#include "tools/sibling_program.h"
#include "tools/simulate/described_system.h"
#include "tools/zero/trainer_runs.h"

namespace dynamiccl {
namespace {

struct AdviseOptions {
  std::vector<std::string> inputs;
  std::string system, framework, model = "gpt", settings, data, policy;
  int tensor_parallel = 1, shard_group = 0, ranks_per_node = 0;
  double step_ms = 0;
  bool json = false, measure = false, on_host = false;
  std::vector<std::string> only;
  int rounds = 5;
  int64_t steps = 15;
  LaunchOptions launch;
};

void RegisterAdviseOptions(CLI::App& app, AdviseOptions& given) {
  app.add_option("trace", given.inputs, "Recorded or imported traces; those of several ranks are one")
      ->required()
      ->check(CLI::ExistingFile);
  app.add_option("--system", given.system,
                 "System file of `dynamiccl calibrate`, or one of " + DescribedSystemNames() +
                     " (default: fitted to the times in the trace)");
  app.add_option(
      "--framework", given.framework,
      "Which framework issued the calls, as `trace generate` names it (default: by labels and calls)");
  app.add_option("--model", given.model, "With --framework: its model, as `trace generate` takes it")
      ->needs("--framework");
  app.add_option("--set", given.settings, "With --framework: its settings, NAME=VALUE,...")
      ->needs("--framework");
  app.add_option("--tensor-parallel", given.tensor_parallel, "With --framework: ranks that share a layer")
      ->check(CLI::Range(1, 4096));
  app.add_option("--shard-group", given.shard_group, "With --framework: ranks that share one copy");
  app.add_option("--step-ms", given.step_ms, "What a step takes (default: as the trace says)")
      ->check(AboveZero());
  app.add_option("--ranks-per-node", given.ranks_per_node, "Of the job (default: as the trace says)")
      ->check(CLI::Range(1, 4096));
  app.add_option(
         "--policy", given.policy,
         "Policy whose LSTM recognises calls without labels (default: the job's own, else the shipped one)")
      ->check(CLI::ExistingFile);
  app.add_flag("--on-host", given.on_host,
               "The job ran on CPUs over hostccl, whose threads share the cores with it; changes that need "
               "GPUs are left out (set by --measure, and if the trace says so)");
  app.add_flag("--json", given.json, "Write JSON instead of tables");
  app.add_flag("--measure", given.measure,
               "Run the trainer, whose options stand after --, with each change and without, in turns");
  app.add_option("--only", given.only, "Measure only changes whose words have this in them; repeatable");
  app.add_option("--rounds", given.rounds, "Of measuring")->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--steps", given.steps, "Of each measuring run")
      ->check(CLI::Range(4, 100000))
      ->capture_default_str();
  app.add_option("--data", given.data, "Text to measure with; default: the cached Shakespeare");
  app.add_option("--topology", given.launch.runtime.topology, "Emulated links to measure over, as of run");
  RegisterNcclOptions(app, given.launch);
  app.footer(
      "Options of `dynamiccl zero train` after -- say which job of this project's trainer was recorded.");
}

// The job that --framework, --model and --set name.
Result<RecognisedJob> NamedJob(const AdviseOptions& given, const RecordedStep& step) {
  if (step.ranks % given.tensor_parallel != 0)
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "--tensor-parallel {}: does not divide {} ranks",
                              given.tensor_parallel, step.ranks),
                    "take a divisor of the job's ranks");
  RecognisedJob named;
  AdvisedJob& job = named.job;
  job.framework = given.framework;
  DYNAMICCL_TRY(job.model, ParseModel(given.model));
  DYNAMICCL_TRY(job.settings, ParseSettingTexts(given.settings, "--set"));
  job.world = {step.ranks / given.tensor_parallel, given.tensor_parallel, given.shard_group};
  named.what = fmt::format("{}, as named", given.model);
  return named;
}

// The job: named by options, by the trainer's options after "--", or recognised from the calls.
Result<RecognisedJob> JobOf(const AdviseOptions& given, const CommandLine& line, const RecordedStep& step) {
  if (!given.framework.empty()) return NamedJob(given, step);
  if (line.program().empty()) return RecogniseJob(step);
  RecognisedJob job;
  DYNAMICCL_TRY(job.job, TrainerJobOf(line.program(), step.ranks));
  job.what = fmt::format("the trainer, {} numbers", job.job.model.Elements());
  return job;
}

Json AdviseJson(const PredictedStep& predicted) {
  return {{"step_ns", predicted.step_ns}, {"exposed_ns", predicted.exposed_ns}};
}

Json AdviseJson(const Advice& advice, const RecordedStep& step, const System& system) {
  Json changes = Json::array();
  for (const AdvisedChange& one : advice.changes) {
    Json row = {{"change", one.change.what}, {"how", one.change.how}};
    row["predicted"] = AdviseJson(one.predicted);
    if (one.interval)
      row["interval"] = {{"low_ns", one.interval->low_ns}, {"high_ns", one.interval->high_ns}};
    row["ratio"] = static_cast<double>(one.predicted.step_ns) / static_cast<double>(advice.simulated.step_ns);
    row["memory_bytes"] = one.change.memory_bytes;
    row["remark"] = one.change.remark;
    changes.push_back(std::move(row));
  }
  const AdvisedJob& job = advice.recognised.job;
  return {{"schema", 1},
          {"job",
           {{"framework", job.framework},
            {"what", advice.recognised.what},
            {"settings", job.settings},
            {"elements", job.model.Elements()},
            {"ranks", step.ranks},
            {"ranks_per_node", step.ranks_per_node},
            {"notes", advice.recognised.notes},
            {"recognised_by", step.recognised_by},
            {"stage", Name(step.stage)},
            {"calls_not_simulated", CallsIn(step.between_two)},
            {"share_of_calls", advice.share_of_calls}}},
          {"system", system.name},
          {"recorded", {{"step_ns", advice.step_ns}, {"steps", step.steps}, {"spread", step.spread}}},
          {"simulated", AdviseJson(advice.simulated)},
          {"computing",
           {{"pass_ns", advice.compute.pass_ns},
            {"update_ns_per_element", advice.compute.update_ns_per_element}}},
          {"no_interval", advice.no_interval},
          {"changes", std::move(changes)}};
}

Json AdviseJson(const MeasuredAdvice& measured) {
  Json rows = Json::array();
  for (const MeasuredChange& one : measured.changes)
    rows.push_back({{"change", one.what},
                    {"step_ms", one.step_ms},
                    {"predicted_ratio", one.predicted_ratio},
                    {"measured_ratio", one.measured_ratio},
                    {"least", one.least},
                    {"most", one.most},
                    {"error", one.Error()}});
  return {
      {"step_ms", measured.step_ms}, {"least", measured.least}, {"most", measured.most}, {"changes", rows}};
}

// Keeps the changes whose description contains one of the words; all where none is given.
void KeepOnly(const std::vector<std::string>& only, Advice& advice) {
  if (only.empty()) return;
  std::erase_if(advice.changes, [&](const AdvisedChange& one) {
    return std::ranges::none_of(
        only, [&](const std::string& part) { return one.change.what.find(part) != std::string::npos; });
  });
}

// Runs the trainer with each change (measured_changes.h).
Result<MeasuredAdvice> Measure(AdviseOptions& given, CommandLine& line, const Advice& advice, int ranks) {
  if (line.program().empty())
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "--measure: no trainer to run"),
                    "give the options of the recorded `dynamiccl zero train` after --");
  given.launch.n_ranks = ranks;
  given.launch.runtime.preload = false;
  DYNAMICCL_TRY(const Installation installation, FindInstallation(given.launch.home));
  DYNAMICCL_TRY(std::vector<std::string> command, SiblingCommand(installation.zero, "dynamiccl-zero", line));
  // Drops the words after "--". They are the trainer's options, and MeasureAdvice adds them to each run.
  command.resize(1);
  DYNAMICCL_TRY(LaunchPlan plan, PlanLaunch(given.launch, std::move(command)));
  DYNAMICCL_TRY(TrainerRuns runs, TrainerRuns::Open(std::move(plan)));
  DYNAMICCL_TRY(const std::string text, FindTrainingText(given.data));
  const std::vector<std::string> options =
      Replaced(line.program(), {"--data", text, "--steps", std::to_string(given.steps)});
  return MeasureAdvice(runs, options, advice, given.rounds,
                       [](const std::string& progress) { spdlog::info("{}", progress); });
}

Result<int> RunAdvise(AdviseOptions& given, CommandLine& line) {
  DYNAMICCL_TRY(Trace trace, ReadGivenTraces(given.inputs));
  DYNAMICCL_TRY(const std::string recognised_by, RecogniseSections(given.policy, ShippedPolicy(), trace));
  DYNAMICCL_TRY(RecordedStep step, StepOf(trace, recognised_by));
  if (given.ranks_per_node > 0) SpreadOver(given.ranks_per_node, step);
  DYNAMICCL_TRY(const System system, given.system.empty() ? SystemOfTimes(step) : SystemNamed(given.system));
  DYNAMICCL_TRY(RecognisedJob job, JobOf(given, line, step));
  const bool on_host = given.on_host || given.measure || trace.sections.front().on_host();
  if (on_host && !given.on_host && !given.measure)
    job.notes.push_back(fmt::format("{}: the job ran on CPUs, so changes that need GPUs are left out",
                                    trace.sections.front().library));
  DYNAMICCL_TRY(Advice advice,
                Advise(step, std::move(job), system, static_cast<int64_t>(given.step_ms * 1e6), on_host));
  KeepOnly(given.only, advice);
  Json json = AdviseJson(advice, step, system);
  if (!given.json) fmt::print("{}", FormatAdvice(advice, step, system));
  if (given.measure) {
    DYNAMICCL_TRY(const MeasuredAdvice measured, Measure(given, line, advice, step.ranks));
    json["measured"] = AdviseJson(measured);
    if (!given.json) fmt::print("\n{}", FormatMeasured(measured, advice));
  }
  if (given.json) PrintJson(json);
  return kExitOk;
}

}  // namespace

Result<int> AdviseCommand(CommandLine& line) {
  AdviseOptions given;
  RegisterAdviseOptions(line.app(), given);
  if (const auto exit_code = line.Parse()) return *exit_code;
  return RunAdvise(given, line);
}

}  // namespace dynamiccl
