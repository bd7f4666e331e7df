// SPDX-License-Identifier: Apache-2.0
// Times several libraries, called sides, in turn on one machine. Noise of the machine affects all of them
// alike, so a difference that remains is a difference of the libraries.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/bench/against/side.h"

namespace dynamiccl {

// Says how long each call is measured.
struct ComparisonOptions {
  int rounds = 5;
  // Milliseconds of one side's calls back to back in a round. Half as many single calls follow, at most 1000.
  double burst_ms = 40;
};

// Times of one side (library) for one collective and size, in microseconds. Each vector has one value per
// round.
struct SideResult {
  std::string name;
  // The reason why the side has no times; empty if it has some.
  std::string missing;
  // The config that hostccl's ranks picked. Empty for other libraries, and if hostccl used its own choice.
  std::string config;
  std::vector<double> microseconds;
  std::vector<double> p50_us;
  std::vector<double> p99_us;

  // Medians over the rounds, in microseconds. time_us() is for calls back to back. p50() and p99() are for
  // the median and the 99th percentile of single calls.
  double time_us() const;
  double p50() const;
  double p99() const;
};

// The results of one call on all sides (libraries).
struct CellResult {
  ComparedCall call;
  int n_ranks = 0;
  // The highest algbw, in GB/s, that the cores' copy rate allows (copy_limit.h), from the median copy rate of
  // the rounds.
  double copy_limit_gbps = 0;
  int void_rounds = 0;  // thrown away since the machine's copy rate changed within them
  // Results of all sides. The first is hostccl's.
  std::vector<SideResult> sides;

  // nccl-tests' algbw of one side in GB/s; 0 if the side has no times.
  double algorithm_gbps(const SideResult& side) const;
  // Time of `side` divided by hostccl's time, for calls back to back. Above 1, hostccl is faster. Nothing
  // when one of the two has no times.
  std::optional<double> TimeRatio(const SideResult& side) const;
  // Median time of single calls of `side` divided by that of hostccl. Nothing when one of the two has no
  // times.
  std::optional<double> SingleRatio(const SideResult& side) const;
};

// Measures one call with several libraries, called sides. The first of `sides` is hostccl. Each round begins
// with another side. The copy rate is probed at the beginning and end of a round. A round whose two probes
// differ by a factor of more than 1.3 is void and is repeated; there are at most twice as many rounds as
// wanted. If too few valid rounds remain, void ones are used too. A side whose library lacks the call is left
// out. Any other failure of a side, and every failure of hostccl, ends the comparison.
Result<CellResult> CompareCall(std::vector<Side>& sides, const ComparedCall& call, int n_ranks,
                               const ComparisonOptions& options);

}  // namespace dynamiccl
