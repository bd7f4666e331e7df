// SPDX-License-Identifier: Apache-2.0
// Sets the structure agent's thresholds on sequences that training did not see.
#pragma once

#include <vector>

#include "agents/structure/call_sequence.h"
#include "src/policy/policy.h"

namespace dynamiccl::agents {

// The rates that the thresholds aim at.
struct StructureCalibration {
  // Share of right answers among those that are not "unknown". If no margin reaches it, the widest margin is
  // set.
  double answers_right = 0.95;
  // Calls of quiet sequences that are flagged as surprising, as a share of all calls.
  double false_alarms = 1 / 20e3;
};

// The basis of a calibration.
struct CalibrationReport {
  // Calls on which the threshold of surprise was set.
  uint64_t quiet_calls = 0;
};

// Sets margins and the threshold of surprise in `tensors`, whose weights must be valid. Calls from the third
// step on count as quiet: by then a job repeats itself.
CalibrationReport CalibrateStructure(const std::vector<CallSequence>& sequences,
                                     const StructureCalibration& calibration, PolicyTensors& tensors);

}  // namespace dynamiccl::agents
