// SPDX-License-Identifier: Apache-2.0
// `dynamiccl pilot`: what DynamICCL would do for a user's own job, in one file. The job is observed; its
// calls are tried under every config; then the job runs by default, with ours, and by default again
// (docs/pilot.md). What it says while it works goes to standard error, the result to standard output:
//
//   dynamiccl: 1 of 3: the job as it is, recorded
//   dynamiccl: 2 of 3: 20 of its calls again under each config
//   tunable 100.0 % of the bytes (no times for all calls)
//   Default and ours were not compared: there is nothing that ours would change.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <filesystem>

#include "src/base/clock.h"
#include "src/decision/override_rules.h"
#include "tools/command_table.h"
#include "tools/exit_code.h"
#include "tools/launch/machine_description.h"
#include "tools/launch/shell_quote.h"
#include "tools/launch_options.h"
#include "tools/pilot/pilot_result.h"
#include "tools/report/run_timeline.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl {
namespace {

struct PilotOptions {
  LaunchOptions launch;
  std::string folder = "pilot";
  double budget_s = 900;
  int rounds = 5;
  uint64_t replayed_calls = 500;
  bool json = false;
};

// ClearlyDiffer needs at least three samples.
constexpr int kFewestRounds = 3;
// Share of the budget that trying configs may take.
constexpr double kHeadroomShare = 0.4;

// One pilot. The command owns it on its stack and calls Run once.
class Pilot {
 public:
  Pilot(const CommandLine& line, PilotOptions& given) : line_(line), given_(given) {}

  Result<PilotResult> Run() {
    DYNAMICCL_CHECK_OK(Observe());
    TryHeadroom();
    DYNAMICCL_CHECK_OK(ChooseOurs());
    DYNAMICCL_CHECK_OK(RunRounds());
    if (ours_.rules == File("best.csv"))
      DYNAMICCL_CHECK_OK(PutAsideSlowerRules(ours_.rules, File("slower.csv"), result_));
    return std::move(result_);
  }

 private:
  std::string File(const std::string& name) const { return given_.folder + "/" + name; }
  double Elapsed() const { return static_cast<double>(MonotonicNanoseconds() - begun_ns_) * 1e-9; }

  // Runs the job once, recorded. With empty `ours` NCCL chooses.
  Result<RecordedLaunch> LaunchJob(const RuntimeOptions& ours, const std::string& name) {
    LaunchOptions launch = given_.launch;
    launch.runtime = ours;
    launch.runtime.topology = given_.launch.runtime.topology;
    if (launch.runtime.policy.empty() && launch.runtime.rules.empty()) launch.runtime.mode = "observe";
    const std::string trace = File(name + ".ctrace");
    launch.runtime.trace = PartPattern(trace);
    DYNAMICCL_TRY(LaunchPlan plan, PlanLaunch(launch, line_.program()));
    plan.output_path = File("job.log");
    DYNAMICCL_TRY(RecordedLaunch recorded, LaunchRecorded(plan, trace));
    if (recorded.outcome.ok()) return recorded;
    return WithHint(MakeError(ErrorKind::kPeerFailed, "the job ({}): {}", name, Describe(recorded.outcome)),
                    "its output is in " + plan.output_path);
  }

  Status Observe() {
    spdlog::info("1 of 3: the job as it is, recorded");
    DYNAMICCL_TRY(result_.observed, LaunchJob({}, "observed"));
    result_.machine = MachineDescription();
    result_.command = ShellQuote(line_.program());
    result_.trace = File("observed.ctrace");
    spdlog::info("{}", Describe(result_.observed.coverage));
    return {};
  }

  // The replay of the observed calls with the same ranks, which must all run on this machine.
  std::vector<std::string> ReplayCommand(const Installation& installation) const {
    std::vector<std::string> command{installation.dynamiccl,
                                     "replay",
                                     result_.trace,
                                     "--compare",
                                     "--json",
                                     "--rounds",
                                     "3",
                                     "--best-rules",
                                     File("best.csv"),
                                     "--count",
                                     std::to_string(given_.replayed_calls)};
    if (!given_.launch.runtime.topology.empty())
      command.insert(command.end(), {"--topology", given_.launch.runtime.topology});
    if (given_.launch.force_hostccl) command.push_back("--hostccl");
    if (given_.launch.force_no_hostccl) command.push_back("--no-hostccl");
    return command;
  }

  // Replays the job's calls under every config, within its share of the budget.
  Result<Json> Headroom() const {
    DYNAMICCL_TRY(const Installation installation, FindInstallation(given_.launch.home));
    const std::string output = File("headroom.json");
    LaunchPlan plan;
    plan.command = {"/bin/sh", "-c", R"(output=$1; shift; exec "$@" > "$output")", "sh", output};
    const std::vector<std::string> command = ReplayCommand(installation);
    plan.command.insert(plan.command.end(), command.begin(), command.end());
    plan.output_path = File("headroom.log");
    plan.time_limit = std::chrono::milliseconds(static_cast<int64_t>(given_.budget_s * kHeadroomShare * 1e3));
    DYNAMICCL_TRY(const LaunchOutcome outcome, Launch(plan));
    if (outcome.ok()) return ReadJsonFile(output);
    return MakeError(ErrorKind::kPeerFailed, "replay: {}; see {}", Describe(outcome), plan.output_path);
  }

  // A job that cannot be replayed here, for instance because its ranks run on several nodes, is compared
  // nevertheless.
  void TryHeadroom() {
    if (given_.replayed_calls == 0) {
      result_.headroom_missing = "left out";
      return;
    }
    spdlog::info("2 of 3: {} of its calls again under each config", given_.replayed_calls);
    Result<Json> headroom = Headroom();
    if (headroom)
      result_.headroom = std::move(*headroom);
    else
      result_.headroom_missing = headroom.error().message;
  }

  // Sets "ours" to the given policy or rules, else to the rules that the replay found. Without any there is
  // nothing to compare.
  Status ChooseOurs() {
    const RuntimeOptions& given = given_.launch.runtime;
    if (!given.policy.empty() || !given.rules.empty()) {
      ours_ = {.mode = given.mode, .policy = given.policy, .rules = given.rules};
      result_.ours = given.policy.empty() ? "rules " + given.rules : "policy " + given.policy;
      return {};
    }
    const auto best = OverrideRules::ReadFile(File("best.csv"));
    if (!best || best->rules().empty()) return {};
    ours_ = {.mode = "frozen", .rules = File("best.csv")};
    result_.ours = "rules found by forcing each config, " + ours_.rules;
    return {};
  }

  // Runs the job and returns its pace in milliseconds.
  Result<double> Time(const RuntimeOptions& runtime, const std::string& name) {
    DYNAMICCL_TRY(const RecordedLaunch recorded, LaunchJob(runtime, name));
    DYNAMICCL_TRY(const Trace trace, ReadTrace(File(name + ".ctrace")));
    DYNAMICCL_TRY(const StepPace pace, PaceOf(trace));
    result_.steps_marked = pace.marked;
    return pace.milliseconds;
  }

  // Runs rounds until their number or the budget is reached, but at least three.
  Status RunRounds() {
    if (result_.ours.empty()) return {};
    const double begin = Elapsed();
    for (int round = 0; round < given_.rounds; ++round) {
      const double spent = Elapsed() - begin;
      if (round >= kFewestRounds && Elapsed() + spent / round > given_.budget_s) break;
      spdlog::info("3 of 3: default, ours, default: round {} of at most {}", round + 1, given_.rounds);
      PilotRound timed;
      DYNAMICCL_TRY(timed.default_ms, Time({}, "default"));
      DYNAMICCL_TRY(timed.ours_ms, Time(ours_, "ours"));
      DYNAMICCL_TRY(timed.default_again_ms, Time({}, "default"));
      result_.rounds.push_back(timed);
    }
    return {};
  }

  const CommandLine& line_;
  PilotOptions& given_;
  const int64_t begun_ns_ = MonotonicNanoseconds();
  RuntimeOptions ours_;
  PilotResult result_;
};

Status Write(const PilotResult& result, const std::string& folder) {
  DYNAMICCL_TRY(Trace trace, ReadTrace(result.trace));
  DYNAMICCL_CHECK_OK(WriteJsonFile(folder + "/pilot.json", ToJson(result)));
  return WriteTextFile(folder + "/pilot.html", RenderPilot(result, {result.trace, std::move(trace)}));
}

}  // namespace

Result<int> PilotCommand(CommandLine& line) {
  PilotOptions given;
  RegisterLaunchOptions(line.app(), given.launch);
  line.app().add_option("-o,--output", given.folder, "Folder for what is found")->capture_default_str();
  line.app()
      .add_option("--budget", given.budget_s, "Time for all of it (600s, 15m)")
      ->transform(CLI::AsNumberWithUnit(std::map<std::string, double>{{"s", 1}, {"m", 60}}))
      ->default_str("15m");
  line.app()
      .add_option("--rounds", given.rounds,
                  "Rounds of default, ours, default; fewer, but three, when time is short")
      ->capture_default_str()
      ->check(CLI::Range(kFewestRounds, 1000));
  line.app()
      .add_option("--replayed-calls", given.replayed_calls,
                  "Calls of the job that are tried under each config; 0: none")
      ->capture_default_str();
  line.app().add_flag("--json", given.json, "Print the result as JSON");
  if (const auto exit_code = line.Parse()) return *exit_code;
  std::error_code failure;
  std::filesystem::create_directories(given.folder, failure);
  if (failure) return MakeError(ErrorKind::kUnavailable, "{}: {}", given.folder, failure.message());
  DYNAMICCL_TRY(const PilotResult result, Pilot(line, given).Run());
  DYNAMICCL_CHECK_OK(Write(result, given.folder));
  if (given.json)
    PrintJson(ToJson(result));
  else
    fmt::print("{}{}/pilot.html has all of it\n", Describe(result), given.folder);
  return result.Verdict() == PilotVerdict::kSlower ? kExitResultSaysNo : kExitOk;
}

}  // namespace dynamiccl
