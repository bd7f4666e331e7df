// SPDX-License-Identifier: Apache-2.0
// Max-min fairness: how transfers share links. A transfer's part of a link is weighted by what the transfer
// would use if it were alone on the link, because a transfer that can use twice as much of a link has twice
// as many channels on it.
#pragma once

#include <cstddef>
#include <vector>

namespace dynamiccl {

// Holds how much a transfer uses of a link at full speed, in the unit of the link's capacity.
struct LinkUse {
  size_t link = 0;
  double used = 0;
  // Bytes that the transfer sends over the link in each nanosecond at full speed. More than `used` if the
  // transfer's stated time is shorter than the link's capacity allows.
  double sent = used;

  friend bool operator==(const LinkUse&, const LinkUse&) = default;
};

// Returns the speed of each transfer, above 0 and at most 1: no link carries more than its capacity, and no
// speed can rise without lowering one that is not higher (Bertsekas and Gallager, Data Networks, 6.5.2).
// Capacities must be above 0. Equal inputs give equal bits, since only + - * / and comparisons are used.
std::vector<double> MaxMinSpeeds(const std::vector<double>& capacities,
                                 const std::vector<std::vector<LinkUse>>& transfers);

}  // namespace dynamiccl
