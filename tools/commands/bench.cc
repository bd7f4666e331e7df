// SPDX-License-Identifier: Apache-2.0
// `dynamiccl bench`: times collectives over any NCCL, with the options and columns of nccl-tests. If no
// launcher has set its variables, the command starts the ranks itself; each rank runs this same command.
#include <cstdlib>
#include <thread>

#include "src/base/file_kind.h"
#include "tools/bench/memory_report.h"
#include "tools/bench/row_deadline.h"
#include "tools/command_table.h"
#include "tools/commands/bench_options.h"
#include "tools/commands/bench_table.h"
#include "tools/exit_code.h"

namespace dynamiccl {
namespace {

// Refuses options that hostccl cannot honour.
Status RefuseForHostccl(const BenchCommandOptions& given, const BenchSession& session) {
  if (given.cta_policy < 0 || !session.library().is_hostccl()) return {};
  return WithHint(
      MakeError(ErrorKind::kInvalidArgument,
                "dynamiccl bench: -x {}: hostccl has no blocks of threads to place", given.cta_policy),
      "leave -x out, or use NVIDIA's library (--no-hostccl)");
}

Status WriteBenchJson(const BenchCommandOptions& given, const Json& json) {
  if (given.json != "-") return WriteJsonFile(given.json, json);
  PrintJson(json);
  return {};
}

// Runs one rank. Rank 0 prints and writes the results. Every rank ends if a row takes longer than its
// deadline. Exit code 1: a checked element was wrong.
Result<int> RunRank(const BenchCommandOptions& given, const BenchOptions& options,
                    const SessionOptions& where) {
  const int64_t before = ResidentBytes();
  DYNAMICCL_TRY(const auto session, BenchSession::Open(where));
  DYNAMICCL_CHECK_OK(RefuseForHostccl(given, *session));
  const int64_t initialised = ResidentBytes();
  const bool prints = session->place().rank == 0 && given.json != "-";
  const BenchTable table(given, options);
  DYNAMICCL_TRY(const std::vector<RankIdentity> ranks, GatherIdentities(*session));
  if (prints) table.Header(*session, ranks);
  RowDeadline deadline(std::chrono::seconds(given.timeout_s));
  std::vector<BenchRow> rows;
  const BenchObserver observer{.row =
                                   [&](const BenchRow& row) {
                                     deadline.Restart();
                                     if (prints) table.Row(row);
                                     rows.push_back(row);
                                   },
                               .unsupported =
                                   [&](DataType type) {
                                     if (prints)
                                       fmt::print("# {}: this library does not reduce it, left out\n",
                                                  Name(type));
                                   }};
  DYNAMICCL_CHECK_OK(RunCollectiveBench(*session, options, observer));
  if (prints) table.Footer(rows);
  if (given.memory != 0) {
    DYNAMICCL_TRY(const std::string report,
                  MemoryReport(*session, initialised - before, 2 * options.sizes.back(),
                               ResidentBytes() - initialised));
    if (prints) fmt::print("{}", report);
  }
  if (session->place().rank == 0 && !given.json.empty())
    DYNAMICCL_CHECK_OK(WriteBenchJson(given, BenchJson(*session, options, rows)));
  return WrongElements(rows) == 0 ? kExitOk : kExitResultSaysNo;
}

// Runs this process's ranks: one, or one on each thread with -t.
Result<int> RunProcess(const BenchCommandOptions& given, const BenchOptions& options) {
  SessionOptions where{.registration = static_cast<Registration>(given.registration),
                       .null_stream = given.null_stream != 0};
  if (given.cta_policy >= 0) where.cta_policy = given.cta_policy;
  DYNAMICCL_TRY(where.place, RankPlaceFromEnvironment());
  where.place.n_ranks *= given.threads;
  where.place.n_local_ranks *= given.threads;
  where.place.ranks_in_process = given.threads;
  const int first = where.place.rank * given.threads;
  const int first_here = where.place.local_rank * given.threads;
  std::vector<Result<int>> results(static_cast<size_t>(given.threads), kExitOk);
  std::vector<std::thread> threads;
  for (int i = 0; i < given.threads; ++i) {
    where.place.rank = first + i;
    where.place.local_rank = first_here + i;
    threads.emplace_back([&given, &options, where, &result = results[static_cast<size_t>(i)]] {
      result = RunRank(given, options, where);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (Result<int>& result : results) {
    if (!result || *result != kExitOk) return std::move(result);
  }
  return kExitOk;
}

// Returns an error if the user names several collectives or several numbers of ranks without --against.
Status OnlyOne(const BenchCommandOptions& given) {
  if (given.collectives.size() == 1 && given.ranks.size() == 1) return {};
  return WithHint(
      MakeError(ErrorKind::kInvalidArgument,
                "dynamiccl bench: several collectives or numbers of ranks are for --against only"),
      "give one of each, or add --against openmpi,impi,gloo");
}

}  // namespace

Result<int> BenchCommand(CommandLine& line) {
  BenchCommandOptions given;
  RegisterBenchOptions(line.app(), given);
  if (const auto exit_code = line.Parse()) return *exit_code;
  if (given.json != "-") DYNAMICCL_CHECK_OK(CheckOutputs({given.json}));
  if (!given.control.empty()) return RunComparedRank(given);
  if (given.against.empty()) DYNAMICCL_CHECK_OK(OnlyOne(given));
  DYNAMICCL_TRY(const BenchOptions options, UnderstandBench(given));
  if (!given.against.empty()) return RunAgainst(given, options);
  if (std::getenv("RANK") != nullptr) return RunProcess(given, options);
  given.launch.n_ranks = given.ranks.front();
  DYNAMICCL_TRY(const LaunchOutcome outcome, LaunchSameCommand(line, "bench", given.launch));
  return AnswerOf(outcome);
}

}  // namespace dynamiccl
