// SPDX-License-Identifier: Apache-2.0
// `dynamiccl replay`: issues the collectives of a trace again, over any NCCL and with any policy. Without a
// launcher's variables it starts the ranks itself, each running this command again.
#include <spdlog/spdlog.h>

#include <cstdlib>

#include "tools/command_table.h"
#include "tools/exit_code.h"
#include "tools/launch_options.h"
#include "tools/replay/replay_session.h"
#include "tools/report/json_output.h"
#include "traces/format/trace_files.h"
#include "traces/replay/replay_summary.h"

namespace dynamiccl {
namespace {

struct Words {
  std::vector<std::string> inputs;
  ReplayWindow window;
  ReplayOptions options;
  bool json = false;
  LaunchOptions launch;
};

Json ToJson(const ReplaySession& session, const ReplayPlan& plan, const ReplayResult& result) {
  Json rows = Json::array();
  for (const ReplayRow& row : SummarizeReplay(plan, result.group_us)) {
    rows.push_back({{"stage", Name(row.stage)},
                    {"collective", Name(row.collective)},
                    {"size_class", Name(row.size_class)},
                    {"calls", row.calls},
                    {"bytes", row.bytes},
                    {"recorded_calls", row.recorded_calls},
                    {"recorded_us", row.recorded_us},
                    {"replayed_us", row.replayed_us}});
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
           const Words& words) {
  for (const std::string& note : plan.notes) spdlog::info("{}", note);
  fmt::print("# {} ranks over {}, {}, times of rank 0\n", session.place().n_ranks,
             session.library().Description(), words.options.paced ? "paced as recorded" : "at full speed");
  fmt::print("{}", FormatReplayRows(SummarizeReplay(plan, result.group_us)));
  fmt::print("# {:.3f} s, operations {:016x}\n", result.wall_us * 1e-6, OperationHash(plan));
  if (words.options.check) fmt::print("# {} elements checked, {} wrong\n", result.checked, result.wrong);
}

Result<int> RunAsRank(const Words& words) {
  DYNAMICCL_TRY(const Trace trace, ReadTraceFiles(words.inputs));
  DYNAMICCL_TRY(const RankPlace place, RankPlaceFromEnvironment());
  // Planned before ranks meet: what is wrong with the trace is said at once, by every rank alike.
  DYNAMICCL_TRY(const ReplayPlan plan, PlanReplay(trace, place.rank, place.n_ranks, words.window));
  DYNAMICCL_TRY(const auto session, ReplaySession::Open());
  DYNAMICCL_TRY(const ReplayResult result, session->Run(plan, words.options));
  if (place.rank == 0 && words.json) PrintJson(ToJson(*session, plan, result));
  if (place.rank == 0 && !words.json) Print(*session, plan, result, words);
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
  app.add_flag("--paced", words.options.paced, "Keep the recorded gaps (default: as fast as possible)");
  app.add_flag("--check", words.options.check,
               "Fill and verify the data of every collective, one group at a time");
  RegisterRankOptions(app, words.launch);
  app.add_flag("--json", words.json, "Write JSON instead of the table");
}

}  // namespace

Result<int> ReplayCommand(CommandLine& line) {
  Words words;
  Register(line.app(), words);
  if (const auto exit_code = line.Parse()) return *exit_code;
  return std::getenv("RANK") != nullptr ? RunAsRank(words) : LaunchRanks(line, words);
}

}  // namespace dynamiccl
