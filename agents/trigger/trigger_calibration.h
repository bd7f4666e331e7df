// SPDX-License-Identifier: Apache-2.0
// The trigger agent's thresholds, from sequences that training did not see.
#pragma once

#include <vector>

#include "agents/trigger/call_sequence.h"
#include "src/policy/policy.h"

namespace dynamiccl::agents {

struct TriggerCalibration {
  double answers_right = 0.95;     // of the calls that are not "unknown"; where no margin does it, the widest
  double false_alarms = 1 / 20e3;  // flagged calls of quiet sequences, per call
};

struct CalibrationReport {
  uint64_t quiet_calls = 0;  // on which the surprise was calibrated
};

// Sets margins and the surprise in `tensors`, whose weights are there. Quiet are the calls from the third
// step on: by then a job repeats itself.
CalibrationReport CalibrateTrigger(const std::vector<CallSequence>& sequences,
                                   const TriggerCalibration& calibration, PolicyTensors& tensors);

}  // namespace dynamiccl::agents
