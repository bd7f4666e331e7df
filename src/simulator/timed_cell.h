// SPDX-License-Identifier: Apache-2.0
// One measured time, as systems are fitted to and judged by.
#pragma once

#include <cstdint>

#include "src/collective/collective.h"
#include "src/collective/collective_config.h"

namespace dynamiccl {

struct TimedCell {
  Collective collective = Collective::kAllReduce;
  int n_ranks = 2;
  int n_nodes = 1;
  uint64_t bytes = 0;       // NCCL's total
  CollectiveConfig config;  // without algorithm or protocol: what the library picked is not known
  double us = 0;            // above 0
  double log_spread = 0;    // how far repeats lie apart, as a logarithm; 0: not known

  friend bool operator==(const TimedCell&, const TimedCell&) = default;
};

}  // namespace dynamiccl
