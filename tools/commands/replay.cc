// SPDX-License-Identifier: Apache-2.0
// `dynamiccl replay`: issues the collectives of a trace again, over any NCCL and with any policy. Without a
// launcher's variables it starts the ranks itself, each running this command again.
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <map>
#include <set>

#include "tools/command_table.h"
#include "tools/exit_code.h"
#include "tools/launch_options.h"
#include "tools/replay/replay_session.h"
#include "tools/report/choice_comparison.h"
#include "tools/report/json_output.h"
#include "traces/format/measurement_file.h"
#include "traces/format/trace_files.h"
#include "traces/replay/replay_summary.h"

namespace dynamiccl {
namespace {

struct Words {
  std::vector<std::string> inputs;
  ReplayWindow window;
  std::vector<int64_t> steps;   // first, last
  std::vector<double> seconds;  // begin, end
  std::string measurements;
  std::string topology;  // of the measurements
  ReplayOptions options;
  bool json = false;
  LaunchOptions launch;
};

// Default and best of one topology of a sweep, microseconds.
using SweptTimes = std::map<std::pair<Collective, SizeClass>, std::pair<double, double>>;

Result<SweptTimes> SweptTimesOf(const Words& words) {
  SweptTimes times;
  if (words.measurements.empty()) return times;
  DYNAMICCL_TRY(const MeasurementFile file, ReadMeasurementFile(words.measurements));
  std::set<std::string> topologies;
  for (const SweepCell& cell : CellsOf(file)) {
    if (!words.topology.empty() && cell.topology != words.topology) continue;
    topologies.insert(cell.topology);
    const auto microseconds = std::pair(DefaultOf(cell).microseconds, BestOf(cell).microseconds);
    if (microseconds.first.repeats == 0) continue;
    times[{cell.collective, SizeClassOf(cell.bytes)}] = {microseconds.first.median,
                                                         microseconds.second.median};
  }
  if (topologies.size() == 1) return times;
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "{}: {} topologies to take times from",
                            words.measurements, topologies.size()),
                  "name one with --measured-topology");
}

void AddSweptTimes(const SweptTimes& swept, std::vector<ReplayRow>& table) {
  for (ReplayRow& row : table) {
    const auto found = swept.find({row.collective, row.size_class});
    if (found == swept.end()) continue;
    row.default_us = found->second.first;
    row.best_us = found->second.second;
  }
}

Json ToJson(const ReplaySession& session, const ReplayPlan& plan, const ReplayResult& result,
            const std::vector<ReplayRow>& table) {
  Json rows = Json::array();
  for (const ReplayRow& row : table) {
    rows.push_back({{"stage", Name(row.stage)},
                    {"collective", Name(row.collective)},
                    {"size_class", Name(row.size_class)},
                    {"calls", row.calls},
                    {"bytes", row.bytes},
                    {"recorded_calls", row.recorded_calls},
                    {"recorded_us", row.recorded_us},
                    {"replayed_us", row.replayed_us},
                    {"default_us", row.default_us},
                    {"best_us", row.best_us}});
  }
  return {{"schema", 1},
          {"library", session.library().Description()},
          {"ranks", session.place().n_ranks},
          {"operations", fmt::format("{:016x}", OperationHash(plan))},
          {"wall_us", result.wall_us},
          {"checked", result.checked},
          {"wrong", result.wrong},
          {"notes", plan.notes},
          {"rows", rows}};
}

void Print(const ReplaySession& session, const ReplayPlan& plan, const ReplayResult& result,
           const std::vector<ReplayRow>& table, const Words& words) {
  for (const std::string& note : plan.notes) spdlog::info("{}", note);
  fmt::print("# {} ranks over {}, {}, times of rank 0\n", session.place().n_ranks,
             session.library().Description(), words.options.paced ? "paced as recorded" : "at full speed");
  fmt::print("{}", FormatReplayRows(table));
  fmt::print("# {:.3f} s, operations {:016x}\n", result.wall_us * 1e-6, OperationHash(plan));
  if (words.options.check) fmt::print("# {} elements checked, {} wrong\n", result.checked, result.wrong);
}

Result<int> RunAsRank(const Words& words) {
  DYNAMICCL_TRY(const Trace trace, ReadTraceFiles(words.inputs));
  DYNAMICCL_TRY(const RankPlace place, RankPlaceFromEnvironment());
  DYNAMICCL_TRY(const SweptTimes swept, SweptTimesOf(words));
  // Planned before ranks meet: what is wrong with the trace is said at once, by every rank alike.
  DYNAMICCL_TRY(const ReplayPlan plan, PlanReplay(trace, place.rank, place.n_ranks, words.window));
  DYNAMICCL_TRY(const auto session, ReplaySession::Open());
  DYNAMICCL_TRY(const ReplayResult result, session->Run(plan, words.options));
  std::vector<ReplayRow> table = SummarizeReplay(plan, result.group_us);
  AddSweptTimes(swept, table);
  if (place.rank == 0 && words.json) PrintJson(ToJson(*session, plan, result, table));
  if (place.rank == 0 && !words.json) Print(*session, plan, result, table, words);
  return result.wrong == 0 ? kExitOk : kExitResultSaysNo;
}

Result<int> LaunchRanks(CommandLine& line, Words& words) {
  DYNAMICCL_TRY(const Trace trace, ReadTraceFiles(words.inputs));
  if (words.launch.n_ranks == 0)
    words.launch.n_ranks = std::max<int>(2, static_cast<int>(trace.sections.size()));
  // What cannot be planned is an error here, before any process is started.
  DYNAMICCL_TRY(const ReplayPlan plan, PlanReplay(trace, 0, words.launch.n_ranks, words.window));
  DYNAMICCL_TRY(const LaunchOutcome outcome, LaunchSameCommand(line, "replay", words.launch));
  return AnswerOf(outcome);
}

void Register(CLI::App& app, Words& words) {
  app.add_option("trace", words.inputs, "Traces to replay; those of several ranks are taken together")
      ->required()
      ->check(CLI::ExistingFile);
  app.add_option("-n,--ranks", words.launch.n_ranks,
                 "Ranks to start (default: as recorded, 2 for a trace of one rank)")
      ->check(CLI::Range(1, 1024));
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
  app.add_flag("--paced", words.options.paced, "Keep the recorded gaps (default: as fast as possible)");
  app.add_flag("--check", words.options.check,
               "Fill and verify the data of every collective, one group at a time");
  RegisterRankOptions(app, words.launch);
  app.add_flag("--json", words.json, "Write JSON instead of the table");
}

void FillWindow(Words& words) {
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
  Words words;
  Register(line.app(), words);
  if (const auto exit_code = line.Parse()) return *exit_code;
  FillWindow(words);
  return std::getenv("RANK") != nullptr ? RunAsRank(words) : LaunchRanks(line, words);
}

}  // namespace dynamiccl
