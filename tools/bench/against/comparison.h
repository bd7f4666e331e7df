// SPDX-License-Identifier: Apache-2.0
// Libraries timed in turns, in one run, on the same machine in the same minute: what shared noise leaves of a
// difference is a difference.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/bench/against/side.h"

namespace dynamiccl {

struct ComparisonOptions {
  int rounds = 5;
  double burst_ms = 40;  // calls back to back a side and round; half as long again of single calls
};

// What one side did in one cell. `missing` says why when it has no times.
struct SideResult {
  std::string name;
  std::string missing;
  std::string config;  // that our side chose, where it chose
  std::vector<double> microseconds;
  std::vector<double> p50_us;
  std::vector<double> p99_us;

  double time_us() const;
  double p50() const;
  double p99() const;
};

struct CellResult {
  ComparedCall call;
  int n_ranks = 0;
  double copy_limit_gbps = 0;     // of algbw; median of the rounds
  int void_rounds = 0;            // thrown away since the machine's copy rate changed within them
  std::vector<SideResult> sides;  // ours first

  double algorithm_gbps(const SideResult& side) const;
  // Time of `side` over ours: above 1 we are faster. None where one has no times.
  std::optional<double> TimeRatio(const SideResult& side) const;
  std::optional<double> SingleRatio(const SideResult& side) const;
};

// `sides` has ours first. Rounds rotate the order of sides and begin and end with a probe of the copy rate; a
// round whose probes differ by more than 1.3 times is void and repeated, at most as often again as there are
// rounds. When too few rounds are left, void ones are kept rather than nothing.
Result<CellResult> CompareCall(std::vector<Side>& sides, const ComparedCall& call, int n_ranks,
                               const ComparisonOptions& options);

}  // namespace dynamiccl
