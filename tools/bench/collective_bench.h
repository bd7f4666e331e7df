// SPDX-License-Identifier: Apache-2.0
// Measures as nccl-tests does, with any NCCL library: one operation over sizes, types, operators and roots,
// out of place and in place. In addition, it times single calls and measures the copy limit. Everything is
// measured in several rounds, and the median of the rounds is reported.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "tools/bench/bench_session.h"
#include "tools/bench/cuda/background_load.h"

namespace dynamiccl {

// An operator of nccl-tests' option -o: one of NCCL's operators, or mulsum.
struct BenchOp {
  ReduceOp op = ReduceOp::kSum;
  bool doubled = false;

  std::string_view name() const { return doubled ? "mulsum" : Name(op); }
};

// nccl-tests' option -a: how the times of the ranks are combined into one.
enum class RankAverage { kRank0 = 0, kMean = 1, kMin = 2, kMax = 3 };

// nccl-tests' option -z: what the benchmark does after each iteration.
enum class Blocking { kNone = 0, kWaitAndBarrier = 1, kWait = 2, kWaitAndBarrierUntimed = 3 };

// nccl-tests' options, followed by those that `dynamiccl bench` adds. There is one member for each option.
// docs/benchmarking.md lists the options' letters.
struct BenchOptions {
  TestedCollective collective = TestedCollective::kAllReduce;
  // Bytes of the larger of send and receive buffer, for each row, as in nccl-tests.
  std::vector<uint64_t> sizes;
  std::vector<DataType> types{DataType::kFloat32};
  std::vector<BenchOp> ops{{}};
  std::vector<int> roots{0};
  int iterations = 20;
  int warmups = 1;
  // Number of calls in one group.
  int aggregate = 1;
  // Number of checks of the data, each with other data.
  int checks = 1;
  // Number of times that all sizes are repeated; 0: endlessly.
  int cycles = 1;
  // Number of elements by which buffers are shifted from their alignment.
  int unalign = 0;
  int rounds = 5;
  // Number of single calls in a round; -1: as many as take 50 ms, but 10 to 1000.
  int singles = -1;
  // Number of first iterations that the per-iteration columns leave out.
  int skip = 0;
  RankAverage average = RankAverage::kMean;
  Blocking blocking = Blocking::kNone;
  bool cpu_time = false;
  bool per_iteration = false;
  bool copy_limit = true;
  // Load that runs on each GPU during the timed calls.
  std::optional<cuda::LoadRequest> background;
};

// Times of single iterations in microseconds, measured by events. The time of an iteration is its maximum
// over the ranks.
struct IterationStatistics {
  double min = 0;
  double max = 0;
  double p50 = 0;
  double p99 = 0;
  double deviation_percent = 0;
};

// One half of a table row, out of place or in place. Values are medians over the rounds.
struct BenchTimes {
  // Time of one call among calls back to back, averaged over iterations and ranks.
  double microseconds = 0;
  double spread_percent = 0;  // (largest - smallest) / median of the rounds' microseconds
  double algorithm_gbps = 0;
  double bus_gbps = 0;
  // Median of single calls, each followed by a synchronise. The time of a call is its maximum over the ranks.
  double p50_us = 0;
  double p99_us = 0;
  // The highest algbw that the cores' copy rate allows (copy_limit.h); not set if the copy rate was not
  // measured.
  std::optional<double> copy_limit_gbps;
  // Number of wrong elements over all ranks; not set if nothing was checked.
  std::optional<uint64_t> wrong;
  // Set only with the option per_iteration.
  IterationStatistics iterations;

  // algbw as a percentage of the copy limit.
  std::optional<double> percent_of_copy_limit() const;
};

// One line of the benchmark's table.
struct BenchRow {
  uint64_t bytes = 0;
  uint64_t count = 0;  // as nccl-tests prints it: the API's argument
  DataType type = DataType::kFloat32;
  BenchOp op;
  int root = 0;
  BenchTimes out_of_place;
  BenchTimes in_place;
  // Holds what the background load on rank 0's GPU did.
  std::optional<cuda::LoadReport> background;
};

// Functions that receive the results, on every rank, in the order of measuring.
struct BenchObserver {
  std::function<void(const BenchRow&)> row;
  // Called for a requested type that the library cannot reduce.
  std::function<void(DataType)> unsupported;
};

// Runs the whole benchmark. Every rank calls it with the same options.
Status RunCollectiveBench(BenchSession& session, const BenchOptions& options, const BenchObserver& observer);

// Issues `warmups` untimed calls, then times `iterations` calls back to back. Returns this rank's
// microseconds for one call.
Result<double> TimeBackToBack(BenchSession& session, const BenchCall& call, int iterations, int warmups);
// Returns the microseconds of `count` single calls, each followed by a synchronise. Each value is the maximum
// over the ranks.
Result<std::vector<double>> TimeSingles(BenchSession& session, const BenchCall& call, int count);
// Returns the number of single calls that take about 50 ms in total: 10 to 1000.
int SinglesFor(double call_us);

// Returns (largest - smallest) / median of the values in percent; 0 for fewer than two values.
double SpreadPercent(const std::vector<double>& values);

}  // namespace dynamiccl
