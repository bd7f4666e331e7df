// SPDX-License-Identifier: Apache-2.0
// `dynamiccl advise`: what a user can change of a recorded job today, without us, and what a step would take.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "tools/advise/advice.h"
#include "tools/advise/measured_changes.h"
#include "tools/advise/trainer_options.h"
#include "tools/command_table.h"
#include "tools/exit_code.h"
#include "tools/launch_options.h"
#include "tools/report/json_output.h"
#include "tools/sibling_program.h"
#include "tools/simulate/described_system.h"
#include "tools/zero/trainer_runs.h"
#include "traces/format/trace_files.h"

namespace dynamiccl {
namespace {

struct Words {
  std::vector<std::string> inputs;
  std::string system, framework, model = "gpt", settings, data;
  int tensor_parallel = 1, shard_group = 0, ranks_per_node = 0;
  double step_ms = 0;
  bool json = false, measure = false;
  std::vector<std::string> only;
  int rounds = 5;
  int64_t steps = 15;
  LaunchOptions launch;
};

void Register(CLI::App& app, Words& words) {
  app.add_option("trace", words.inputs, "Recorded or imported traces; those of several ranks are one")
      ->required()
      ->check(CLI::ExistingFile);
  app.add_option("--system", words.system,
                 "System file of `dynamiccl calibrate`, or one of " + DescribedSystemNames() +
                     " (default: fitted to the times in the trace)");
  app.add_option(
      "--framework", words.framework,
      "Which framework issued the calls, as `trace generate` names it (default: by labels and calls)");
  app.add_option("--model", words.model, "With --framework: its model, as `trace generate` takes it")
      ->needs("--framework");
  app.add_option("--set", words.settings, "With --framework: its settings, NAME=VALUE,...")
      ->needs("--framework");
  app.add_option("--tensor-parallel", words.tensor_parallel, "With --framework: ranks that share a layer")
      ->check(CLI::Range(1, 4096));
  app.add_option("--shard-group", words.shard_group, "With --framework: ranks that share one copy");
  app.add_option("--step-ms", words.step_ms, "What a step takes (default: as the trace says)")
      ->check(CLI::PositiveNumber);
  app.add_option("--ranks-per-node", words.ranks_per_node, "Of the job (default: as the trace says)")
      ->check(CLI::Range(1, 4096));
  app.add_flag("--json", words.json, "Write JSON instead of tables");
  app.add_flag("--measure", words.measure,
               "Run the trainer, whose options stand after --, with each change and without, in turns");
  app.add_option("--only", words.only, "Measure only changes whose words have this in them; repeatable");
  app.add_option("--rounds", words.rounds, "Of measuring")->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--steps", words.steps, "Of each measuring run")
      ->check(CLI::Range(4, 100000))
      ->capture_default_str();
  app.add_option("--data", words.data, "Text to measure with; default: the cached Shakespeare");
  app.add_option("--topology", words.launch.runtime.topology, "Emulated links to measure over, as of run");
  RegisterNcclOptions(app, words.launch);
  app.footer(
      "Options of `dynamiccl zero train` after -- say which job of this project's trainer was recorded.");
}

Result<RecognisedJob> NamedJob(const Words& words, const RecordedStep& step) {
  RecognisedJob named;
  AdvisedJob& job = named.job;
  job.framework = words.framework;
  DYNAMICCL_TRY(job.model, ParseModel(words.model));
  DYNAMICCL_TRY(job.settings, ParseSettingTexts(words.settings, "--set"));
  job.world = {step.ranks / words.tensor_parallel, words.tensor_parallel, words.shard_group};
  named.what = fmt::format("{}, as named", words.model);
  return named;
}

Result<RecognisedJob> JobOf(const Words& words, const CommandLine& line, const RecordedStep& step) {
  if (!words.framework.empty()) return NamedJob(words, step);
  if (line.program().empty()) return RecogniseJob(step);
  RecognisedJob job;
  DYNAMICCL_TRY(job.job, TrainerJobOf(line.program(), step.ranks));
  job.what = fmt::format("the trainer, {} numbers", job.job.model.Elements());
  return job;
}

Json ToJson(const PredictedStep& predicted) {
  return {{"step_ns", predicted.step_ns}, {"exposed_ns", predicted.exposed_ns}};
}

Json ToJson(const Advice& advice, const RecordedStep& step, const System& system) {
  Json changes = Json::array();
  for (const AdvisedChange& one : advice.changes) {
    Json row = {{"change", one.change.what}, {"how", one.change.how}};
    row["predicted"] = ToJson(one.predicted);
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
            {"share_of_calls", advice.share_of_calls}}},
          {"system", system.name},
          {"recorded", {{"step_ns", advice.step_ns}, {"steps", step.steps}, {"spread", step.spread}}},
          {"simulated", ToJson(advice.simulated)},
          {"computing",
           {{"pass_ns", advice.compute.pass_ns},
            {"update_ns_per_element", advice.compute.update_ns_per_element}}},
          {"changes", std::move(changes)}};
}

Json ToJson(const MeasuredAdvice& measured) {
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

void KeepOnly(const std::vector<std::string>& only, Advice& advice) {
  if (only.empty()) return;
  std::erase_if(advice.changes, [&](const AdvisedChange& one) {
    return std::ranges::none_of(
        only, [&](const std::string& words) { return one.change.what.find(words) != std::string::npos; });
  });
}

Result<MeasuredAdvice> Measure(Words& words, CommandLine& line, const Advice& advice, int ranks) {
  if (line.program().empty())
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "--measure: no trainer to run"),
                    "give the options of the recorded `dynamiccl zero train` after --");
  words.launch.n_ranks = ranks;
  words.launch.runtime.preload = false;
  DYNAMICCL_TRY(const Installation installation, FindInstallation(words.launch.home));
  DYNAMICCL_TRY(std::vector<std::string> command, SiblingCommand(installation.zero, "dynamiccl-zero", line));
  // What stands after -- are options of each run, not of all.
  command.resize(1);
  DYNAMICCL_TRY(LaunchPlan plan, PlanLaunch(words.launch, std::move(command)));
  DYNAMICCL_TRY(TrainerRuns runs, TrainerRuns::Open(std::move(plan)));
  DYNAMICCL_TRY(const std::string text, FindTrainingText(words.data));
  const std::vector<std::string> options =
      Replaced(line.program(), {"--data", text, "--steps", std::to_string(words.steps)});
  return MeasureAdvice(runs, options, advice, words.rounds,
                       [](const std::string& progress) { spdlog::info("{}", progress); });
}

Result<int> Run(Words& words, CommandLine& line) {
  DYNAMICCL_TRY(const Trace trace, ReadTraceFiles(words.inputs));
  DYNAMICCL_TRY(RecordedStep step, StepOf(trace));
  if (words.ranks_per_node > 0) SpreadOver(words.ranks_per_node, step);
  DYNAMICCL_TRY(const System system, words.system.empty() ? SystemOfTimes(step) : SystemNamed(words.system));
  DYNAMICCL_TRY(RecognisedJob job, JobOf(words, line, step));
  DYNAMICCL_TRY(Advice advice,
                Advise(step, std::move(job), system, static_cast<int64_t>(words.step_ms * 1e6)));
  KeepOnly(words.only, advice);
  Json json = ToJson(advice, step, system);
  if (!words.json) fmt::print("{}", FormatAdvice(advice, step, system));
  if (words.measure) {
    DYNAMICCL_TRY(const MeasuredAdvice measured, Measure(words, line, advice, step.ranks));
    json["measured"] = ToJson(measured);
    if (!words.json) fmt::print("\n{}", FormatMeasured(measured, advice));
  }
  if (words.json) PrintJson(json);
  return kExitOk;
}

}  // namespace

Result<int> AdviseCommand(CommandLine& line) {
  Words words;
  Register(line.app(), words);
  if (const auto exit_code = line.Parse()) return *exit_code;
  return Run(words, line);
}

}  // namespace dynamiccl
