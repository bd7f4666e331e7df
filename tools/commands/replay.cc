// SPDX-License-Identifier: Apache-2.0
// `dynamiccl replay`: issues the collectives of a trace again, over any NCCL or in virtual time, and with any
// policy. Without a launcher's variables it starts the ranks itself, each running this command again.
#include <cstdlib>
#include <map>

#include "tools/command_table.h"
#include "tools/commands/replay_compare.h"
#include "tools/exit_code.h"
#include "tools/replay/replay_report.h"
#include "tools/replay/replay_session.h"
#include "tools/report/choice_comparison.h"
#include "traces/format/measurement_file.h"
#include "traces/format/trace_files.h"

namespace dynamiccl {
namespace {

// One to warm up, and two to take a median of.
constexpr int kComparedPasses = 3;
// Of one machine, as for the other commands that start ranks.
constexpr int kMaxProcesses = 1024;

// Default and best of one topology of a sweep, microseconds.
using SweptTimes = std::map<std::pair<Collective, SizeClass>, std::pair<double, double>>;

Result<SweptTimes> SweptTimesOf(const ReplayWords& words) {
  SweptTimes times;
  if (words.measurements.empty() || words.compare) return times;
  DYNAMICCL_TRY(const MeasurementFile file, ReadMeasurementFile(words.measurements));
  const std::vector<SweepCell> cells = CellsOf(file);
  DYNAMICCL_TRY(const std::string topology, OneTopology(cells, words.topology, words.measurements));
  for (const SweepCell& cell : cells) {
    if (cell.topology != topology) continue;
    const auto microseconds = std::pair(DefaultOf(cell).microseconds, BestOf(cell).microseconds);
    if (microseconds.first.repeats == 0) continue;
    times[{cell.collective, SizeClassOf(cell.bytes)}] = {microseconds.first.median,
                                                         microseconds.second.median};
  }
  return times;
}

void AddSweptTimes(const SweptTimes& swept, std::vector<ReplayRow>& table) {
  for (ReplayRow& row : table) {
    const auto found = swept.find({row.collective, row.size_class});
    if (found == swept.end()) continue;
    row.default_us = found->second.first;
    row.best_us = found->second.second;
  }
}

std::vector<ReplayRow> RowsOf(const ReplayPlan& plan, const std::vector<double>& group_us,
                              const SweptTimes& swept) {
  std::vector<ReplayRow> rows = SummarizeReplay(plan, group_us);
  AddSweptTimes(swept, rows);
  return rows;
}

void Show(const ReplayReport& report, const ReplayWords& words) {
  if (words.json)
    PrintJson(ToJson(report));
  else
    Print(report);
}

Result<int> RunAsRank(const ReplayWords& words) {
  DYNAMICCL_TRY(const Trace trace, ReadTraceFiles(words.inputs));
  DYNAMICCL_TRY(const RankPlace place, RankPlaceFromEnvironment());
  DYNAMICCL_TRY(const SweptTimes swept, SweptTimesOf(words));
  // Planned before ranks meet: what is wrong with the trace is said at once, by every rank alike.
  DYNAMICCL_TRY(const ReplayPlan plan, PlanReplay(trace, place.rank, place.n_ranks, words.window));
  DYNAMICCL_TRY(const auto session, ReplaySession::Open());
  DYNAMICCL_TRY(const ReplayResult result, session->Run(plan, words.options));
  if (place.rank == 0 && !words.arm_report.empty()) {
    DYNAMICCL_CHECK_OK(WriteArmReport(words.arm_report, session->library().Description(), plan, result));
  } else if (place.rank == 0) {
    const ReplayReport report{.library = session->library().Description(),
                              .ranks = place.n_ranks,
                              .paced = words.options.paced,
                              .check = words.options.check,
                              .operations = {OperationText(OperationHash(plan))},
                              .wall_us = result.wall_us,
                              .checked = result.checked,
                              .wrong = result.wrong,
                              .notes = plan.notes,
                              .rows = RowsOf(plan, result.group_us, swept)};
    Show(report, words);
  }
  return result.wrong == 0 ? kExitOk : kExitResultSaysNo;
}

Result<int> RunSimulated(const ReplayWords& words) {
  DYNAMICCL_TRY(const Trace trace, ReadTraceFiles(words.inputs));
  DYNAMICCL_TRY(const SweptTimes swept, SweptTimesOf(words));
  DYNAMICCL_TRY(const NamedSystem system, FindSystem(words.system));
  DYNAMICCL_TRY(Choosers choosers, ChoosersOf(words.launch.runtime.rules, words.launch.runtime.policy));
  const TraceJobOptions options{.ranks = words.launch.n_ranks,
                                .window = words.window,
                                .paced = words.options.paced,
                                .config = DecidedOn(system.system, std::move(choosers))};
  DYNAMICCL_TRY(const SimulatedReplay replay, ReplayInSimulator(trace, system, options));
  ReplayReport report{.library = SimulatedLibrary(system),
                      .ranks = static_cast<int>(replay.operations.size()),
                      .paced = words.options.paced,
                      .wall_us = replay.wall_us,
                      .notes = replay.plan.notes,
                      .rows = RowsOf(replay.plan, replay.group_us, swept)};
  for (const uint64_t hash : replay.operations) report.operations.push_back(OperationText(hash));
  Show(report, words);
  return kExitOk;
}

Result<int> LaunchRanks(CommandLine& line, ReplayWords& words) {
  DYNAMICCL_TRY(const Trace trace, ReadTraceFiles(words.inputs));
  words.launch.n_ranks = ReplayRanks(trace, words.launch.n_ranks);
  if (words.launch.n_ranks > kMaxProcesses) {
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "{} ranks are too many processes", words.launch.n_ranks),
        fmt::format("{} at most; --simulate takes more", kMaxProcesses));
  }
  // What cannot be planned is an error here, before any process is started.
  DYNAMICCL_TRY(const ReplayPlan plan, PlanReplay(trace, 0, words.launch.n_ranks, words.window));
  DYNAMICCL_TRY(const LaunchOutcome outcome, LaunchSameCommand(line, "replay", words.launch));
  return AnswerOf(outcome);
}

void Register(CLI::App& app, ReplayWords& words) {
  app.add_option("trace", words.inputs, "Traces to replay; those of several ranks are taken together")
      ->required()
      ->check(CLI::ExistingFile);
  app.add_option("-n,--ranks", words.launch.n_ranks,
                 "Ranks to start (default: as recorded, 2 for a trace of one rank)")
      ->check(CLI::Range(1, 32767));
  app.add_option("--simulate", words.system,
                 "In virtual time on this system instead of over a library: a file, or one of " +
                     DescribedSystemNames());
  app.add_option("--first", words.window.first, "First call to issue, counted from 0");
  app.add_option("--count", words.window.count, "Number of calls to issue");
  app.add_option("--steps", words.steps,
                 "First and last training step to issue, as the program marked them: 3:5")
      ->delimiter(':')
      ->expected(2);
  app.add_option("--seconds", words.seconds, "Calls issued in this time since the first one: 0.5:2")
      ->delimiter(':')
      ->expected(2)
      ->check(CLI::Range(0.0, 1e9));
  app.add_option("--measurements", words.measurements,
                 "Sweep of the same ranks: adds the times of the default and of the best config to the table")
      ->check(CLI::ExistingFile);
  app.add_option("--measured-topology", words.topology,
                 "Which of the sweep's topologies (default: its only one)");
  app.add_flag(
      "--compare", words.compare,
      "By NCCL's default, with --policy, --rules or --mode, and with the best config of each size, in "
      "turns; the best is --measurements', else found by forcing each config in the replay");
  app.add_option("--rounds", words.rounds, "Of the turns of --compare (default: 5)")
      ->check(CLI::Range(1, 1000));
  app.add_option("--passes", words.options.passes,
                 "Issue the plan so often; the first of several is not timed (default: 1, 3 with --compare)")
      ->check(CLI::Range(1, 1000));
  app.add_option("--best-rules", words.best_rules, "Write the rules of the best of --compare into this file");
  app.add_option("--arm-report", words.arm_report)->group("");
  app.add_flag("--paced", words.options.paced, "Keep the recorded gaps (default: as fast as possible)");
  app.add_flag("--check", words.options.check,
               "Fill and verify the data of every collective, one group at a time")
      ->excludes("--simulate");
  RegisterRankOptions(app, words.launch);
  app.add_flag("--json", words.json, "Write JSON instead of the table");
}

void FillRest(CLI::App& app, ReplayWords& words) {
  if (words.compare && app.count("--passes") == 0) words.options.passes = kComparedPasses;
  if (!words.steps.empty()) {
    words.window.first_step = words.steps[0];
    words.window.last_step = words.steps[1];
  }
  if (!words.seconds.empty()) {
    words.window.begin_ns = static_cast<int64_t>(words.seconds[0] * 1e9);
    words.window.end_ns = static_cast<int64_t>(words.seconds[1] * 1e9);
  }
}

}  // namespace

Result<int> ReplayCommand(CommandLine& line) {
  ReplayWords words;
  Register(line.app(), words);
  if (const auto exit_code = line.Parse()) return *exit_code;
  FillRest(line.app(), words);
  const bool is_rank = std::getenv("RANK") != nullptr && words.system.empty();
  if (is_rank) return RunAsRank(words);
  if (words.compare) return RunComparison(line, words);
  return words.system.empty() ? LaunchRanks(line, words) : RunSimulated(words);
}

}  // namespace dynamiccl
