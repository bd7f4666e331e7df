// SPDX-License-Identifier: Apache-2.0
// Makes a sweep without measuring. Each time is the cost model's time, multiplied by a hidden factor and by
// noise. The hidden factor belongs to the algorithm and protocol and changes with the size.
#pragma once

#include <cstdint>

#include "traces/format/measurement.h"

namespace dynamiccl::test {

struct SyntheticSweep {
  uint64_t seed = 1;
  int topologies = 3;  // "t0", "t1", ...: in each, links between nodes are twice as slow
  int repeats = 6;
  double noise = 0.02;       // relative
  double hidden_factor = 2;  // largest error of the cost model, as a factor
};

MeasurementFile MakeSweep(const SyntheticSweep& settings);

}  // namespace dynamiccl::test
