// SPDX-License-Identifier: Apache-2.0
// Makes a sweep without a machine. A time is the cost model's, times a hidden factor of each (algorithm,
// protocol) that grows with the size, times noise.
#pragma once

#include <cstdint>

#include "traces/format/measurement.h"

namespace dynamiccl::test {

struct SyntheticSweep {
  uint64_t seed = 1;
  int topologies = 3;  // named "t0", "t1", ...: links between nodes twice as slow each
  int repeats = 6;
  double noise = 0.02;       // relative
  double hidden_factor = 2;  // the cost model is wrong by up to this
};

MeasurementFile MakeSweep(const SyntheticSweep& settings);

}  // namespace dynamiccl::test
