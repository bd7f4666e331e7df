// SPDX-License-Identifier: Apache-2.0
// hostccl's software costs from the smallest samples of a sweep at two sizes and two step counts: what
// src/hostccl/hostccl_constants.cc holds. The sweep: 2 ranks, one channel, unshaped node and one shaped pair
// (docs/hostccl_calibration.md has the command).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

// One line of kSoftwareCosts. Microseconds; the bandwidth is the model's bus of one channel, GB/s.
struct SoftwareCost {
  std::string topology;
  Algorithm algorithm = Algorithm::kRing;
  Protocol protocol = Protocol::kSimple;
  double base_us = 0;
  double hop_us = 0;  // without the link's own latency
  double bus_gbps = 0;
};

// All pairs that the file's topologies of two ranks measured at two sizes with one channel. Ring is needed:
// its AllGather (one step) and AllReduce (two) split base and hop; the other algorithms take the base of
// their protocol's Ring. Error: no topology of two ranks with such rows.
Result<std::vector<SoftwareCost>> TwoPointCosts(const MeasurementFile& file);

// Lines to paste into hostccl_constants.cc.
std::string SourceLines(const std::vector<SoftwareCost>& costs);

}  // namespace dynamiccl
