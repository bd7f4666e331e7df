// SPDX-License-Identifier: Apache-2.0
// `dynamiccl bench`: nccl-tests' options and columns over any NCCL. Without a launcher's variables it starts
// the ranks itself, each running this command again.
#include <cstdlib>
#include <thread>

#include "tools/bench/memory_report.h"
#include "tools/bench/row_deadline.h"
#include "tools/command_table.h"
#include "tools/commands/bench_options.h"
#include "tools/commands/bench_table.h"
#include "tools/exit_code.h"

namespace dynamiccl {
namespace {

Status RefuseForHostccl(const BenchWords& words, const BenchSession& session) {
  if (words.cta_policy < 0 || !session.library().is_hostccl()) return {};
  return WithHint(
      MakeError(ErrorKind::kInvalidArgument,
                "dynamiccl bench: -x {}: hostccl has no blocks of threads to place", words.cta_policy),
      "leave -x out, or use NVIDIA's library (--no-hostccl)");
}

Status WriteBenchJson(const BenchWords& words, const Json& json) {
  if (words.json != "-") return WriteJsonFile(words.json, json);
  PrintJson(json);
  return {};
}

// What rank 0 says, and the deadline of each row.
Result<int> RunRank(const BenchWords& words, const BenchOptions& options, const SessionOptions& where) {
  const int64_t before = ResidentBytes();
  DYNAMICCL_TRY(const auto session, BenchSession::Open(where));
  DYNAMICCL_CHECK_OK(RefuseForHostccl(words, *session));
  const int64_t initialised = ResidentBytes();
  const bool prints = session->place().rank == 0 && words.json != "-";
  const BenchTable table(words, options);
  DYNAMICCL_TRY(const std::vector<RankIdentity> ranks, GatherIdentities(*session));
  if (prints) table.Header(*session, ranks);
  RowDeadline deadline(std::chrono::seconds(words.timeout_s));
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
  if (words.memory != 0) {
    DYNAMICCL_TRY(const std::string report,
                  MemoryReport(*session, initialised - before, 2 * options.sizes.back(),
                               ResidentBytes() - initialised));
    if (prints) fmt::print("{}", report);
  }
  if (session->place().rank == 0 && !words.json.empty())
    DYNAMICCL_CHECK_OK(WriteBenchJson(words, BenchJson(*session, options, rows)));
  return WrongElements(rows) == 0 ? kExitOk : kExitResultSaysNo;
}

// This process's ranks: one, or one a thread.
Result<int> RunProcess(const BenchWords& words, const BenchOptions& options) {
  SessionOptions where{.registration = static_cast<Registration>(words.registration),
                       .null_stream = words.null_stream != 0};
  if (words.cta_policy >= 0) where.cta_policy = words.cta_policy;
  DYNAMICCL_TRY(where.place, RankPlaceFromEnvironment());
  where.place.n_ranks *= words.threads;
  where.place.n_local_ranks *= words.threads;
  where.place.ranks_in_process = words.threads;
  const int first = where.place.rank * words.threads;
  const int first_here = where.place.local_rank * words.threads;
  std::vector<Result<int>> results(static_cast<size_t>(words.threads), kExitOk);
  std::vector<std::thread> threads;
  for (int i = 0; i < words.threads; ++i) {
    where.place.rank = first + i;
    where.place.local_rank = first_here + i;
    threads.emplace_back([&words, &options, where, &result = results[static_cast<size_t>(i)]] {
      result = RunRank(words, options, where);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (Result<int>& result : results) {
    if (!result || *result != kExitOk) return std::move(result);
  }
  return kExitOk;
}

Status OnlyOne(const BenchWords& words) {
  if (words.collectives.size() == 1 && words.ranks.size() == 1) return {};
  return WithHint(
      MakeError(ErrorKind::kInvalidArgument,
                "dynamiccl bench: several collectives or numbers of ranks are for --against only"),
      "give one of each, or add --against openmpi,impi,gloo");
}

}  // namespace

Result<int> BenchCommand(CommandLine& line) {
  BenchWords words;
  RegisterBenchOptions(line.app(), words);
  if (const auto exit_code = line.Parse()) return *exit_code;
  if (!words.control.empty()) return RunComparedRank(words);
  if (words.against.empty()) DYNAMICCL_CHECK_OK(OnlyOne(words));
  DYNAMICCL_TRY(const BenchOptions options, UnderstandBench(words));
  if (!words.against.empty()) return RunAgainst(words, options);
  if (std::getenv("RANK") != nullptr) return RunProcess(words, options);
  words.launch.n_ranks = words.ranks.front();
  DYNAMICCL_TRY(const LaunchOutcome outcome, LaunchSameCommand(line, "bench", words.launch));
  return AnswerOf(outcome);
}

}  // namespace dynamiccl
