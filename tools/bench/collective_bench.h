// SPDX-License-Identifier: Apache-2.0
// nccl-tests' measurement over any NCCL: one operation over sizes, types, operators and roots, out of place
// and in place; beside it single calls and the copy limit, all in rounds of which the medians are kept.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "tools/bench/bench_session.h"
#include "tools/bench/cuda/background_load.h"

namespace dynamiccl {

// An operator of nccl-tests' -o: NCCL's, or mulsum.
struct BenchOp {
  ReduceOp op = ReduceOp::kSum;
  bool doubled = false;

  std::string_view name() const { return doubled ? "mulsum" : Name(op); }
};

// nccl-tests' -a: what becomes of the ranks' times.
enum class RankAverage { kRank0 = 0, kMean = 1, kMin = 2, kMax = 3 };

// nccl-tests' -z.
enum class Blocking { kNone = 0, kWaitAndBarrier = 1, kWait = 2, kWaitAndBarrierUntimed = 3 };

struct BenchOptions {
  TestedCollective collective = TestedCollective::kAllReduce;
  std::vector<uint64_t> sizes;  // as nccl-tests takes them: bytes of the larger buffer
  std::vector<DataType> types{DataType::kFloat32};
  std::vector<BenchOp> ops{{}};
  std::vector<int> roots{0};
  int iterations = 20;
  int warmups = 1;
  int aggregate = 1;  // calls a group
  int checks = 1;     // times that the data is checked, with other data each time
  int cycles = 1;     // 0: without end
  int unalign = 0;    // elements
  int rounds = 5;
  int singles = -1;  // single calls a round; -1: as many as take 50 ms, 10 to 1000
  int skip = 0;      // first iterations that do not count for the per-iteration columns
  RankAverage average = RankAverage::kMean;
  Blocking blocking = Blocking::kNone;
  bool cpu_time = false;
  bool per_iteration = false;
  bool copy_limit = true;
  std::optional<cuda::LoadRequest> background;  // beside the timed calls, on each GPU
};

// Of the time between events around each iteration, microseconds, maxima over ranks.
struct IterationStatistics {
  double min = 0;
  double max = 0;
  double p50 = 0;
  double p99 = 0;
  double deviation_percent = 0;
};

// One half of a row. Medians over the rounds.
struct BenchTimes {
  double microseconds = 0;  // of one call among calls issued back to back, averaged over iterations and ranks
  double spread_percent = 0;  // (largest - smallest) / median of the rounds' microseconds
  double algorithm_gbps = 0;
  double bus_gbps = 0;
  double p50_us = 0;  // of single calls, each followed by a synchronise, maxima over ranks
  double p99_us = 0;
  std::optional<double> copy_limit_gbps;  // of algbw, see copy_limit.h
  std::optional<uint64_t> wrong;          // elements over all ranks; none where nothing was checked
  IterationStatistics iterations;         // with per_iteration

  std::optional<double> percent_of_copy_limit() const;
};

struct BenchRow {
  uint64_t bytes = 0;
  uint64_t count = 0;  // as nccl-tests prints it: the API's argument
  DataType type = DataType::kFloat32;
  BenchOp op;
  int root = 0;
  BenchTimes out_of_place;
  BenchTimes in_place;
  std::optional<cuda::LoadReport> background;  // on rank 0's GPU
};

// What the caller is told, on every rank.
struct BenchObserver {
  std::function<void(const BenchRow&)> row;
  std::function<void(DataType)> unsupported;  // a type of several that the library does not reduce
};

Status RunCollectiveBench(BenchSession& session, const BenchOptions& options, const BenchObserver& observer);

// One round of `iterations` calls back to back after `warmups`: each rank's own microseconds a call.
Result<double> TimeBackToBack(BenchSession& session, const BenchCall& call, int iterations, int warmups);
// Microseconds of `count` single calls, each followed by a synchronise, maxima over ranks.
Result<std::vector<double>> TimeSingles(BenchSession& session, const BenchCall& call, int count);
// Single calls that take about 50 ms: 10 to 1000.
int SinglesFor(double call_us);

// (largest - smallest) / median in percent; 0 for fewer than two.
double SpreadPercent(const std::vector<double>& values);

}  // namespace dynamiccl
