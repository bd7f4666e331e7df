// SPDX-License-Identifier: Apache-2.0
// `dynamiccl replay`: issues the collectives of a trace again, over any NCCL or in virtual time, and with any
// policy. Without a launcher's variables it starts the ranks itself, each running this command again. Rank 0
// prints one line for each stage, collective and size class, with times in microseconds of one call. Stage
// and recorded times are shown where the trace has some:
//
//   collective     size class          calls      bytes     replayed   us per call
//   AllReduce      64K..80K              543     33.94M       8467.7
//   # 52.491 s, operations 6903d5c3341e541c
//
// The last word is a hash of what was issued: two replays with the same word issued the same calls.
#include <cstdlib>
#include <map>

#include "src/base/file_kind.h"
#include "tools/command_table.h"
#include "tools/commands/given_traces.h"
#include "tools/commands/replay_compare.h"
#include "tools/exit_code.h"
#include "tools/replay/replay_report.h"
#include "tools/replay/replay_session.h"
#include "tools/report/choice_comparison.h"
#include "traces/format/measurement_file.h"
#include "traces/format/trace_files.h"

namespace dynamiccl {
namespace {

// Number of times that each run of a comparison replays the trace: once to warm up, and twice for a median.
constexpr int kComparedPasses = 3;
// The most ranks that the command starts on this machine. Other commands that start ranks have the same
// limit.
constexpr int kMaxProcesses = 1024;

// Microseconds of one call with NCCL's default config, and with the best config.
struct SweptTime {
  double default_us = 0;
  double best_us = 0;
};
// The times of one topology of a sweep, by collective and size in bytes.
using SweptTimes = std::map<Collective, std::map<uint64_t, SweptTime>>;

Result<SweptTimes> SweptTimesOf(const ReplayCommandOptions& given) {
  SweptTimes times;
  if (given.measurements.empty() || given.compare) return times;
  DYNAMICCL_TRY(const MeasurementFile file, ReadMeasurementFile(given.measurements));
  const std::vector<SweepCell> cells = CellsOf(file);
  DYNAMICCL_TRY(const std::string topology, OneTopology(cells, given.topology, given.measurements));
  for (const SweepCell& cell : cells) {
    if (cell.topology != topology) continue;
    const Timing by_default = DefaultOf(cell).microseconds;
    if (by_default.repeats > 0)
      times[cell.collective][cell.bytes] = {by_default.median, BestOf(cell).microseconds.median};
  }
  return times;
}

// Adds to each row the times of the swept size that is the nearest to the mean size of the row's calls, among
// the sizes of its size class.
void AddSweptTimes(const SweptTimes& swept, std::vector<ReplayRow>& table) {
  for (ReplayRow& row : table) {
    const auto sizes = swept.find(row.collective);
    if (sizes == swept.end()) continue;
    const uint64_t mean = row.bytes / row.calls;
    uint64_t nearest = UINT64_MAX;
    for (const auto& [bytes, time] : sizes->second) {
      const uint64_t away = bytes > mean ? bytes - mean : mean - bytes;
      if (SizeClassOf(bytes) != row.size_class || away >= nearest) continue;
      nearest = away;
      row.default_us = time.default_us;
      row.best_us = time.best_us;
    }
  }
}

std::vector<ReplayRow> RowsOf(const ReplayPlan& plan, const std::vector<double>& group_us,
                              const SweptTimes& swept) {
  std::vector<ReplayRow> rows = SummarizeReplay(plan, group_us);
  AddSweptTimes(swept, rows);
  return rows;
}

void ShowReplay(const ReplayReport& report, const ReplayCommandOptions& given) {
  if (given.json)
    PrintJson(ToJson(report));
  else
    Print(report);
}

// Runs one rank of a replay; rank 0 prints the result.
Result<int> RunReplayAsRank(const ReplayCommandOptions& given) {
  DYNAMICCL_TRY(const Trace trace, ReadTraceFiles(given.inputs));
  DYNAMICCL_TRY(const RankPlace place, RankPlaceFromEnvironment());
  DYNAMICCL_TRY(const SweptTimes swept, SweptTimesOf(given));
  // The replay is planned before the ranks meet, so that every rank reports an error of the trace at once.
  DYNAMICCL_TRY(const ReplayPlan plan, PlanReplay(trace, place.rank, place.n_ranks, given.window));
  DYNAMICCL_TRY(const auto session, ReplaySession::Open());
  DYNAMICCL_TRY(const ReplayResult result, session->Run(plan, given.options));
  if (place.rank == 0 && !given.arm_report.empty()) {
    DYNAMICCL_CHECK_OK(WriteArmReport(given.arm_report, session->library().Description(), plan, result));
  } else if (place.rank == 0) {
    const ReplayReport report{.library = session->library().Description(),
                              .ranks = place.n_ranks,
                              .paced = given.options.paced,
                              .check = given.options.check,
                              .operations = {OperationText(OperationHash(plan))},
                              .wall_us = result.wall_us,
                              .checked = result.checked,
                              .wrong = result.wrong,
                              .notes = plan.notes,
                              .rows = RowsOf(plan, result.group_us, swept)};
    ShowReplay(report, given);
  }
  return result.wrong == 0 ? kExitOk : kExitResultSaysNo;
}

// Replays the trace in the simulator, in virtual time. Starts no process.
Result<int> RunSimulated(const ReplayCommandOptions& given) {
  DYNAMICCL_TRY(Trace trace, ReadGivenTraces(given.inputs));
  DYNAMICCL_CHECK_OK(RecogniseForRules(given.launch.runtime, trace));
  DYNAMICCL_TRY(const SweptTimes swept, SweptTimesOf(given));
  DYNAMICCL_TRY(const NamedSystem system, FindSystem(given.system));
  DYNAMICCL_TRY(Choosers choosers, ChoosersOf(given.launch.runtime.rules, given.launch.runtime.policy));
  const TraceJobOptions options{.ranks = given.launch.n_ranks,
                                .window = given.window,
                                .paced = given.options.paced,
                                .config = DecidedOn(system.system, std::move(choosers))};
  DYNAMICCL_TRY(const SimulatedReplay replay, ReplayInSimulator(trace, system, options));
  ReplayReport report{.library = SimulatedLibrary(system),
                      .ranks = static_cast<int>(replay.operations.size()),
                      .paced = given.options.paced,
                      .wall_us = replay.wall_us,
                      .notes = replay.plan.notes,
                      .rows = RowsOf(replay.plan, replay.group_us, swept)};
  for (const uint64_t hash : replay.operations) report.operations.push_back(OperationText(hash));
  ShowReplay(report, given);
  return kExitOk;
}

// Starts the ranks. A trace that cannot be planned is an error here, before any process is started.
Result<int> LaunchRanks(CommandLine& line, ReplayCommandOptions& given) {
  DYNAMICCL_TRY(const Trace trace, ReadGivenTraces(given.inputs));
  given.launch.n_ranks = ReplayRanks(trace, given.launch.n_ranks);
  if (given.launch.n_ranks > kMaxProcesses) {
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "{} ranks are too many processes", given.launch.n_ranks),
        fmt::format("{} at most; --simulate takes more", kMaxProcesses));
  }
  DYNAMICCL_TRY(const ReplayPlan plan, PlanReplay(trace, 0, given.launch.n_ranks, given.window));
  DYNAMICCL_TRY(const LaunchOutcome outcome, LaunchSameCommand(line, "replay", given.launch));
  return AnswerOf(outcome);
}

void RegisterReplayOptions(CLI::App& app, ReplayCommandOptions& given) {
  app.add_option("trace", given.inputs, "Traces to replay; those of several ranks are taken together")
      ->required()
      ->check(CLI::ExistingFile);
  app.add_option("-n,--ranks", given.launch.n_ranks,
                 "Ranks to start (default: as recorded, 2 for a trace of one rank)")
      ->check(CLI::Range(1, 32767));
  app.add_option("--simulate", given.system,
                 "In virtual time on this system instead of over a library: a file, or one of " +
                     DescribedSystemNames());
  app.add_option("--first", given.window.first, "First call to issue, counted from 0");
  app.add_option("--count", given.window.count, "Number of calls to issue");
  app.add_option("--steps", given.steps,
                 "First and last training step to issue, as the program marked them: 3:5")
      ->delimiter(':')
      ->expected(2);
  app.add_option("--seconds", given.seconds, "Calls issued in this time since the first one: 0.5:2")
      ->delimiter(':')
      ->expected(2)
      ->check(CLI::Range(0.0, 1e9));
  app.add_option("--measurements", given.measurements,
                 "Sweep of the same ranks: adds the times of the default and of the best config to the table")
      ->check(CLI::ExistingFile);
  app.add_option("--measured-topology", given.topology,
                 "Which of the sweep's topologies (default: its only one)");
  app.add_flag(
      "--compare", given.compare,
      "By NCCL's default, with --policy, --rules or --mode, and with the best config of each size, in "
      "turns; the best is --measurements', else found by forcing each config in the replay");
  app.add_option("--rounds", given.rounds, "Of the turns of --compare (default: 5)")
      ->check(CLI::Range(1, 1000));
  app.add_option(
         "--search-seconds", given.search_seconds,
         "Of --compare: start no run of the search for the best after this time, and say how far it came "
         "(default: 120)")
      ->check(CLI::Range(0.0, 1e9));
  app.add_option("--passes", given.options.passes,
                 "Issue the plan so often; the first of several is not timed (default: 1, 3 with --compare)")
      ->check(CLI::Range(1, 1000));
  app.add_option("--best-rules", given.best_rules, "Write the rules of the best of --compare into this file");
  app.add_option("--arm-report", given.arm_report)->group("");
  app.add_flag("--paced", given.options.paced, "Keep the recorded gaps (default: as fast as possible)");
  app.add_flag("--check", given.options.check,
               "Fill and verify the data of every collective, one group at a time")
      ->excludes("--simulate");
  RegisterRankOptions(app, given.launch);
  app.add_flag("--json", given.json, "Write JSON instead of the table");
}

// Fills the options whose value depends on several others.
void FillRest(CLI::App& app, ReplayCommandOptions& given) {
  if (given.compare && app.count("--passes") == 0) given.options.passes = kComparedPasses;
  if (!given.steps.empty()) {
    given.window.first_step = given.steps[0];
    given.window.last_step = given.steps[1];
  }
  if (!given.seconds.empty()) {
    given.window.begin_ns = static_cast<int64_t>(given.seconds[0] * 1e9);
    given.window.end_ns = static_cast<int64_t>(given.seconds[1] * 1e9);
  }
}

}  // namespace

Result<int> ReplayCommand(CommandLine& line) {
  ReplayCommandOptions given;
  RegisterReplayOptions(line.app(), given);
  if (const auto exit_code = line.Parse()) return *exit_code;
  FillRest(line.app(), given);
  DYNAMICCL_CHECK_OK(CheckOutputs({given.best_rules}));
  const bool is_rank = std::getenv("RANK") != nullptr && given.system.empty();
  if (is_rank) return RunReplayAsRank(given);
  if (given.compare) return RunComparison(line, given);
  return given.system.empty() ? LaunchRanks(line, given) : RunSimulated(given);
}

}  // namespace dynamiccl
