// SPDX-License-Identifier: Apache-2.0
// Computes each slice from the progress of the topologies alone, so that an interrupted sweep continues with
// the same rule.
#include "tools/bench/sweep_slices.h"

#include <algorithm>

namespace dynamiccl {

std::optional<Slice> NextSlice(const std::vector<SweptTopology>& topologies, SweepOrder order,
                               double remaining_s, double shortest_s) {
  if (remaining_s <= 0) return std::nullopt;
  double fresh = 0, open = 0;
  std::optional<size_t> next;
  for (size_t i = 0; i < topologies.size(); ++i) {
    const SweptTopology& one = topologies[i];
    if (one.complete) continue;
    ++open;
    fresh += !one.begun;
    const bool better = !next || (topologies[*next].begun && !one.begun) ||
                        (topologies[*next].begun && one.promise > topologies[*next].promise);
    if (better) next = i;
  }
  if (!next) return std::nullopt;
  // Say n topologies are not finished and m of these have not begun. Then m / 2n of the budget is still
  // reserved for the equal shares of the first half. One topology's share of the remaining budget is
  // therefore remaining / (n + m).
  const double share =
      order == SweepOrder::kActive ? remaining_s / (open + fresh) : remaining_s / (fresh > 0 ? fresh : open);
  return Slice{*next, std::min(remaining_s, std::max(share, shortest_s))};
}

}  // namespace dynamiccl
