// SPDX-License-Identifier: Apache-2.0
// nccl-tests' measurement over any NCCL: one collective over a list of sizes, out of place and in place.
#pragma once

#include <functional>
#include <vector>

#include "tools/bench/bench_session.h"

namespace dynamiccl {

struct BenchOptions {
  Collective collective = Collective::kAllReduce;
  std::vector<uint64_t> sizes;  // NCCL's total bytes; rounded down to whole elements (times ranks)
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  int root = 0;
  int iterations = 20;
  int warmups = 1;
  bool check = true;
};

// One half of a row. Times are maxima over ranks.
struct BenchTimes {
  double microseconds = 0;  // of one call, averaged over the iterations issued back to back
  double algorithm_gbps = 0;
  double bus_gbps = 0;
  double p50_us = 0;  // of single calls, from events in the stream
  double p99_us = 0;
  uint64_t wrong = 0;  // elements, on the rank with most; 0 without check
};

struct BenchRow {
  uint64_t bytes = 0;
  uint64_t count = 0;  // as nccl-tests prints it: elements of the whole size
  BenchTimes out_of_place;
  BenchTimes in_place;
};

// Called on every rank; `row` is told each finished row.
Status RunCollectiveBench(BenchSession& session, const BenchOptions& options,
                          const std::function<void(const BenchRow&)>& row);

// Value below which `share` (0 to 1) of the values lie, by the nearest rank. 0 for none.
double Percentile(std::vector<double> values, double share);

}  // namespace dynamiccl
