// SPDX-License-Identifier: Apache-2.0
// One measured time, to which systems are fitted and by which they are judged.
#pragma once

#include <cstdint>

#include "src/collective/collective.h"
#include "src/collective/collective_config.h"

namespace dynamiccl {

// One cell of a sweep: one configuration for one collective and size, with its measured time. A plain value.
struct TimedCell {
  Collective collective = Collective::kAllReduce;
  int n_ranks = 2;
  int n_nodes = 1;
  uint64_t bytes = 0;       // NCCL's total
  CollectiveConfig config;  // without algorithm or protocol when it is not known what the library picked
  double us = 0;            // microseconds, above 0
  double log_spread = 0;    // spread of the repeats, as a logarithm; 0: not known

  friend bool operator==(const TimedCell&, const TimedCell&) = default;
};

}  // namespace dynamiccl
