// SPDX-License-Identifier: Apache-2.0
// Sets the structure agent's thresholds on sequences that training did not see.
#pragma once

#include <vector>

#include "agents/structure/call_sequence.h"
#include "src/policy/policy.h"

namespace dynamiccl::agents {

// The rates that calibration aims for when it sets the thresholds.
struct StructureCalibration {
  // Wanted share of right answers among all answers that are not "unknown". If no margin reaches this share,
  // the widest margin is set.
  double answers_right = 0.95;
  // Wanted share of calls in quiet sequences that are flagged as surprising by mistake.
  double false_alarms = 1 / 20e3;
};

// The amount of data that a calibration was based on.
struct CalibrationReport {
  // Number of calls from which the surprise threshold was derived.
  uint64_t quiet_calls = 0;
};

// Sets margins and the surprise threshold in `tensors`, whose weights must be valid. Calls from the third
// step on count as quiet, because a job repeats itself by then.
CalibrationReport CalibrateStructure(const std::vector<CallSequence>& sequences,
                                     const StructureCalibration& calibration, PolicyTensors& tensors);

}  // namespace dynamiccl::agents
