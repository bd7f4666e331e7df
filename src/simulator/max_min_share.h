// SPDX-License-Identifier: Apache-2.0
// How transfers share links: max-min fairness of speeds, weighted by what each would use alone, since a
// transfer that could use twice as much of a link has twice as many channels on it.
#pragma once

#include <cstddef>
#include <vector>

namespace dynamiccl {

// `used` of a link's capacity (the same unit) at full speed.
struct LinkUse {
  size_t link = 0;
  double used = 0;

  friend bool operator==(const LinkUse&, const LinkUse&) = default;
};

// The speed of each transfer, above 0 and at most 1, so that no link carries more than its capacity and no
// speed can rise without lowering one that is not higher (Bertsekas and Gallager, Data Networks, 6.5.2).
// Capacities are above 0. Of equal inputs equal bits: only + - * / and comparisons.
std::vector<double> MaxMinSpeeds(const std::vector<double>& capacities,
                                 const std::vector<std::vector<LinkUse>>& transfers);

}  // namespace dynamiccl
