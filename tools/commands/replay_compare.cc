// SPDX-License-Identifier: Apache-2.0
// Runs the arms of a comparison and finds the best configs. An arm is one way to choose configs, for example
// NCCL's default or a policy. Its runs are real launches or simulations.
#include "tools/commands/replay_compare.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>

#include "src/base/progress_line.h"
#include "src/policy/policy_file.h"
#include "tools/commands/given_traces.h"
#include "tools/exit_code.h"
#include "tools/launch/installation.h"
#include "tools/launch/temporary_folder.h"
#include "tools/replay/replay_comparison.h"
#include "tools/replay/replay_report.h"
#include "tools/report/best_rules.h"
#include "tools/report/choice_comparison.h"
#include "tools/report/recognised_labels.h"
#include "traces/format/measurement_file.h"

namespace dynamiccl {
namespace {

// Rounds in which the search times each config: enough for a median. The comparison times the best configs
// again beside the other arms.
constexpr int kSearchRounds = 3;

Result<ArmRun> ReadArmReport(const std::string& path) {
  DYNAMICCL_TRY(const Json json, ReadJsonFile(path));
  try {
    return ArmRun{.library = json.at("library"),
                  .operations = json.at("operations"),
                  .wall_us = json.at("wall_us"),
                  .group_us = json.at("group_us"),
                  .checked = json.at("checked"),
                  .wrong = json.at("wrong")};
  } catch (const Json::exception& error) {
    return MakeError(ErrorKind::kCorrupt, "{}: {}", path, error.what());
  }
}

// Content of a file; empty when it cannot be read.
std::string TextOf(const std::string& path) {
  const auto text = ReadTextFile(path);
  return text ? *text : "";
}

// Runs each arm (one way to choose configs) as a launch of its own, because a process decides who chooses its
// configs when it loads NCCL. The constructor's arguments must outlive the object.
class LaunchedArms {
 public:
  LaunchedArms(const CommandLine& line, const ReplayCommandOptions& given, const TemporaryFolder& folder)
      : line_(line), given_(given), report_(folder.File("arm.json")), log_(folder.File("log")) {}

  Result<ArmRun> operator()(const ReplayArm& arm) const {
    LaunchOptions launch = given_.launch;
    launch.runtime.policy = arm.policy;
    launch.runtime.rules = arm.rules;
    launch.runtime.mode = arm.mode.empty() && !arm.rules.empty() ? "frozen" : arm.mode;
    std::error_code ignored;
    std::filesystem::remove(report_, ignored);
    std::filesystem::remove(log_, ignored);
    DYNAMICCL_TRY(const LaunchPlan plan, PlanOf(launch));
    DYNAMICCL_TRY(const LaunchOutcome outcome, Launch(plan));
    if (outcome.ok() || std::filesystem::exists(report_)) return ReadArmReport(report_);
    fmt::print(stderr, "{}", TextOf(log_));
    return MakeError(ErrorKind::kPeerFailed, "replay with '{}': {}", arm.name, Describe(outcome));
  }

 private:
  // Returns the plan that runs this command again as the ranks of one arm. The output goes to a log.
  Result<LaunchPlan> PlanOf(LaunchOptions& launch) const {
    launch.runtime.preload = !launch.runtime.mode.empty() || !launch.runtime.policy.empty();
    DYNAMICCL_TRY(const Installation installation, FindInstallation(launch.home));
    std::vector<std::string> command{installation.dynamiccl, "replay"};
    command.insert(command.end(), line_.arguments().begin(), line_.arguments().end());
    command.insert(command.end(), {"--arm-report", report_});
    DYNAMICCL_TRY(LaunchPlan plan, PlanLaunch(launch, std::move(command)));
    plan.output_path = log_;
    return plan;
  }

  const CommandLine& line_;
  const ReplayCommandOptions& given_;
  const std::string report_;
  const std::string log_;
};

// Runs an arm (one way to choose configs) in the simulator. The constructor's arguments must outlive the
// object.
class SimulatedArms {
 public:
  SimulatedArms(const Trace& trace, const NamedSystem& system, const ReplayCommandOptions& given)
      : trace_(trace), system_(system), given_(given) {}

  Result<ArmRun> operator()(const ReplayArm& arm) const {
    DYNAMICCL_TRY(Choosers choosers, ChoosersOf(arm.rules, arm.policy));
    const TraceJobOptions options{
        .ranks = given_.launch.n_ranks,
        .window = given_.window,
        .paced = given_.options.paced,
        .config = arm.cheapest ? CheapestOn(system_.system) : DecidedOn(system_.system, std::move(choosers))};
    DYNAMICCL_TRY(SimulatedReplay replay, ReplayInSimulator(trace_, system_, options));
    return ArmRun{.library = SimulatedLibrary(system_),
                  .operations = OperationText(replay.operations.front()),
                  .wall_us = replay.wall_us,
                  .group_us = std::move(replay.group_us),
                  .configs = std::move(replay.configs)};
  }

 private:
  const Trace& trace_;
  const NamedSystem& system_;
  const ReplayCommandOptions& given_;
};

Result<std::string> RulesOfSweep(const ReplayCommandOptions& given) {
  DYNAMICCL_TRY(const MeasurementFile file, ReadMeasurementFile(given.measurements));
  const std::vector<SweepCell> cells = CellsOf(file);
  DYNAMICCL_TRY(const std::string topology, OneTopology(cells, given.topology, given.measurements));
  return BestRulesOf(cells, topology);
}

// Ends the search for the best configs after a time limit, and tells the user how far the search is.
class SearchBudget {
 public:
  SearchBudget(double seconds, size_t runs) : seconds_(seconds), runs_(runs) {}

  // Returns true while another run may start.
  bool operator()(size_t finished) {
    const double passed = Passed();
    finished_ = finished;
    if (finished == 1 || line_.IsDue())
      line_.Show(fmt::format(
          "search for the best: {} of {} runs{}; it ends after {:.0f} s (of --search-seconds)", finished,
          runs_, TimeLeftText(passed, static_cast<double>(finished), static_cast<double>(runs_)), seconds_));
    ended_ = passed >= seconds_;
    return !ended_;
  }

  // Says how many of `configs` configs the search timed before it was ended; empty if it timed all of them.
  std::string HowFar(size_t configs) const {
    if (!ended_) return "";
    const size_t arms = configs + 1, rounds = finished_ / arms;
    const std::string reached =
        rounds == 0 ? fmt::format("{} of {} configs once, the others not at all", finished_ - 1, configs)
                    : fmt::format("{} configs in {} of {} rounds", configs, rounds, runs_ / arms);
    return fmt::format(
        "the search for the best ended after {:.0f} s (of --search-seconds) and tried {}; a larger value, "
        "--count or "
        "--measurements finds more",
        Passed(), reached);
  }

  double Passed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  }

 private:
  const double seconds_;
  const size_t runs_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  ProgressLine line_ = ProgressLine::OnStandardError();
  size_t finished_ = 0;
  bool ended_ = false;
};

// Searches for the best configs by replaying the trace under each config. Each of its two parts adds to
// `note` how far it came, if its time was too short.
class SearchByForcing {
 public:
  SearchByForcing(const ReplayPlan& plan, const RunArm& run, const TemporaryFolder& folder, std::string& note)
      : plan_(plan), run_(run), folder_(folder), note_(note) {}

  // Returns the best rules. The first part takes at most kFirstShare of `seconds`.
  Result<std::string> Rules(double seconds) {
    const SearchBudget whole(seconds, 0);
    std::vector<ForcedSearch> parts;
    DYNAMICCL_TRY(ForcedSearch first, Force(ConfigsToForce(plan_), seconds * kFirstShare));
    parts.push_back(std::move(first));
    const std::vector<CollectiveConfig> further = FurtherConfigs(parts.front());
    if (!further.empty()) {
      DYNAMICCL_TRY(ForcedSearch second, Force(further, seconds - whole.Passed()));
      parts.push_back(std::move(second));
    }
    return RulesOfFastest(parts);
  }

 private:
  static constexpr double kFirstShare = 0.6;

  Result<ForcedSearch> Force(std::vector<CollectiveConfig> configs, double seconds) {
    std::vector<ReplayArm> arms{{.name = "default"}};
    for (const CollectiveConfig& config : configs) {
      const std::string path = folder_.File(fmt::format("forced-{}.csv", ++files_));
      DYNAMICCL_CHECK_OK(WriteTextFile(path, RulesThatForce(config)));
      arms.push_back({.name = Name(config), .rules = path, .mode = "frozen"});
    }
    spdlog::info("looking for the best: {} configs and the default, {} rounds each", configs.size(),
                 kSearchRounds);
    spdlog::info("--measurements FILE takes it from a sweep instead; --count N issues fewer calls");
    SearchBudget budget(seconds, arms.size() * kSearchRounds);
    DYNAMICCL_TRY(ReplayComparison comparison,
                  CompareReplays(plan_, arms, kSearchRounds, run_, std::ref(budget)));
    if (note_.empty()) note_ = budget.HowFar(configs.size());
    return ForcedSearch{std::move(comparison), std::move(configs)};
  }

  const ReplayPlan& plan_;
  const RunArm& run_;
  const TemporaryFolder& folder_;
  std::string& note_;
  size_t files_ = 0;
};

// Returns the arm with the best configs. In the simulator, each call of this arm gets the cheapest config.
// Otherwise its rules come from a sweep or, without a sweep, from SearchByForcing, which may set `note`.
Result<ReplayArm> BestArm(const ReplayCommandOptions& given, const ReplayPlan& plan, const RunArm& run,
                          const TemporaryFolder& folder, std::string& note) {
  const std::string rules_path = given.best_rules.empty() ? folder.File("best.csv") : given.best_rules;
  ReplayArm best{.name = "best", .rules = rules_path, .mode = "frozen"};
  if (given.measurements.empty() && !given.system.empty()) return ReplayArm{.name = "best", .cheapest = true};
  DYNAMICCL_TRY(const std::string rules,
                given.measurements.empty()
                    ? SearchByForcing(plan, run, folder, note).Rules(given.search_seconds)
                    : RulesOfSweep(given));
  DYNAMICCL_CHECK_OK(WriteTextFile(best.rules, rules));
  return best;
}

// Writes into each row of the table the config that the best arm's rules give to the row's calls.
Status NameConfigs(const std::string& rules_path, ReplayComparison& comparison) {
  if (rules_path.empty()) return {};
  DYNAMICCL_TRY(const OverrideRules rules, OverrideRules::ReadFile(rules_path));
  for (ComparedRow& row : comparison.rows) {
    std::string& config = row.times.back().config;
    if (!config.empty()) continue;
    const OverrideRule* const rule =
        rules.Match({.collective = row.what.collective, .bytes = row.what.bytes / row.what.calls});
    config = Name(rule == nullptr ? kLeaveNcclAlone : rule->config);
  }
  return {};
}

Result<int> Compare(const ReplayCommandOptions& given, const ReplayPlan& plan, int ranks, const RunArm& run) {
  DYNAMICCL_TRY(const TemporaryFolder folder, TemporaryFolder::Create("replay"));
  const RuntimeOptions& ours = given.launch.runtime;
  std::vector<ReplayArm> arms{{.name = "default"}};
  if (given.system.empty()) arms.push_back({.name = kDefaultAgain});
  if (!ours.policy.empty() || !ours.rules.empty() || !ours.mode.empty())
    arms.push_back({.name = "ours", .policy = ours.policy, .rules = ours.rules, .mode = ours.mode});
  std::string how_far;
  DYNAMICCL_TRY(ReplayArm best, BestArm(given, plan, run, folder, how_far));
  arms.push_back(best);
  const int rounds = given.system.empty() ? given.rounds : 1;
  DYNAMICCL_TRY(ReplayComparison comparison, CompareReplays(plan, arms, rounds, run));
  comparison.ranks = ranks;
  if (!how_far.empty()) comparison.notes.push_back(how_far);
  DYNAMICCL_CHECK_OK(NameConfigs(best.rules, comparison));
  if (given.json) {
    PrintJson(ToJson(comparison));
  } else {
    for (const std::string& note : comparison.notes) spdlog::info("{}", note);
    fmt::print("# {} ranks over {}, {}, {} rounds in turn\n", ranks, comparison.library,
               given.options.paced ? "paced as recorded" : "at full speed", rounds);
    fmt::print("{}", FormatComparison(comparison));
    if (given.options.check)
      fmt::print("# {} elements checked, {} wrong\n", comparison.checked, comparison.wrong);
  }
  return comparison.wrong == 0 ? kExitOk : kExitResultSaysNo;
}

}  // namespace

Result<int> RunComparison(const CommandLine& line, const ReplayCommandOptions& given) {
  DYNAMICCL_TRY(Trace trace, ReadGivenTraces(given.inputs));
  if (!given.system.empty()) DYNAMICCL_CHECK_OK(RecogniseForRules(given.launch.runtime, trace));
  const int ranks = ReplayRanks(trace, given.launch.n_ranks);
  DYNAMICCL_TRY(const ReplayPlan plan, PlanReplay(trace, 0, ranks, given.window));
  if (!given.system.empty()) {
    DYNAMICCL_TRY(const NamedSystem system, FindSystem(given.system));
    return Compare(given, plan, ranks, SimulatedArms(trace, system, given));
  }
  ReplayCommandOptions launched = given;
  launched.launch.n_ranks = ranks;
  DYNAMICCL_TRY(const TemporaryFolder folder, TemporaryFolder::Create("replay"));
  return Compare(given, plan, ranks, LaunchedArms(line, launched, folder));
}

Status WriteArmReport(const std::string& path, const std::string& library, const ReplayPlan& plan,
                      const ReplayResult& result) {
  return WriteJsonFile(path, {{"schema", 1},
                              {"library", library},
                              {"operations", OperationText(OperationHash(plan))},
                              {"wall_us", result.wall_us},
                              {"group_us", result.group_us},
                              {"checked", result.checked},
                              {"wrong", result.wrong}});
}

Status RecogniseForRules(const RuntimeOptions& ours, Trace& trace) {
  if (ours.rules.empty()) return {};
  DYNAMICCL_TRY(const std::string by, RecogniseSections(ours.policy, ShippedPolicy(), trace));
  if (!by.empty()) spdlog::info("rules see roles, phases and stages as {} recognises them", by);
  return {};
}

Result<Choosers> ChoosersOf(const std::string& rules, const std::string& policy) {
  Choosers choosers;
  if (!rules.empty()) {
    DYNAMICCL_TRY(OverrideRules read, OverrideRules::ReadFile(rules));
    choosers.rules = std::make_shared<const OverrideRules>(std::move(read));
  }
  if (!policy.empty()) {
    DYNAMICCL_TRY(choosers.policy, ReadPolicyFile(policy));
  }
  return choosers;
}

}  // namespace dynamiccl
