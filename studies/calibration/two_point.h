// SPDX-License-Identifier: Apache-2.0
// Computes hostccl's software costs, the contents of src/hostccl/hostccl_constants.cc, from a sweep at two
// sizes and two numbers of steps. The smallest sample of each cell counts. The sweep has 2 ranks and one
// channel, on an unshaped node and on one shaped pair (docs/hostccl_calibration.md has the command).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

// One line of kSoftwareCosts. Costs are microseconds; the bandwidth is the model's bus of one channel in
// GB/s.
struct SoftwareCost {
  std::string topology;
  Algorithm algorithm = Algorithm::kRing;
  Protocol protocol = Protocol::kSimple;
  double base_us = 0;
  // Microseconds of a hop, without the link's own latency.
  double hop_us = 0;
  double bus_gbps = 0;
};

// All (algorithm, protocol) pairs that the file's topologies of two ranks measured at two sizes with one
// channel. Ring is needed, because its AllGather (one step) and AllReduce (two steps) separate base and hop.
// The other algorithms take the base of their protocol's Ring. If no topology of two ranks has such rows, the
// result is an error.
Result<std::vector<SoftwareCost>> TwoPointCosts(const MeasurementFile& file);

// Lines to paste into hostccl_constants.cc.
std::string SourceLines(const std::vector<SoftwareCost>& costs);

}  // namespace dynamiccl
