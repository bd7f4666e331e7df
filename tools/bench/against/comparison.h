// SPDX-License-Identifier: Apache-2.0
// Times several libraries in turns, in one run on one machine. Noise of the machine hits all of them alike,
// so a difference that remains is a difference of the libraries.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/bench/against/side.h"

namespace dynamiccl {

// Sets how long each cell is measured.
struct ComparisonOptions {
  int rounds = 5;
  // Milliseconds that one side's calls back to back take in a round. Half as many single calls follow, at
  // most 1000.
  double burst_ms = 40;
};

// Times of one side in one cell, one value a round, in microseconds.
struct SideResult {
  std::string name;
  // The reason why the side has no times; empty if it has some.
  std::string missing;
  // The config that hostccl's side picked. Empty for the other sides, and where it picked none.
  std::string config;
  std::vector<double> microseconds;
  std::vector<double> p50_us;
  std::vector<double> p99_us;

  // Medians over the rounds: of calls back to back, and of the median and 99th percentile of single calls.
  double time_us() const;
  double p50() const;
  double p99() const;
};

// One call, timed on all sides.
struct CellResult {
  ComparedCall call;
  int n_ranks = 0;
  // Copy limit of algbw (copy_limit.h), from the median copy rate of the rounds.
  double copy_limit_gbps = 0;
  int void_rounds = 0;  // thrown away since the machine's copy rate changed within them
  // Results of all sides. The first is hostccl's.
  std::vector<SideResult> sides;

  // nccl-tests' algbw of one side; 0 without times.
  double algorithm_gbps(const SideResult& side) const;
  // Time of `side` divided by that of hostccl's side, for calls back to back. Above 1 hostccl is faster.
  // Nothing when one of the two has no times.
  std::optional<double> TimeRatio(const SideResult& side) const;
  // Returns the ratio of the medians of single calls.
  std::optional<double> SingleRatio(const SideResult& side) const;
};

// Measures one cell. The first of `sides` is hostccl's. Each round begins with another side, and has a probe
// of the copy rate at its beginning and end. A round whose two probes differ by a factor of more than 1.3 is
// void and is repeated; there are at most twice as many rounds as wanted. If too few valid rounds remain,
// void ones are used too. A side whose library lacks the call is left out. Any other failure of a side, and
// every failure of hostccl's, ends the comparison.
Result<CellResult> CompareCall(std::vector<Side>& sides, const ComparedCall& call, int n_ranks,
                               const ComparisonOptions& options);

}  // namespace dynamiccl
