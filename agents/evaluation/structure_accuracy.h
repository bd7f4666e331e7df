// SPDX-License-Identifier: Apache-2.0
// How well roles, phases and stages are recognised on labelled sequences, call by call, as a job would see
// it: what is known before a call against the call's label.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "agents/trigger/call_sequence.h"
#include "src/policy/policy.h"

namespace dynamiccl::agents {

// Calls with a label: recognised rightly, not recognised, recognised wrongly.
struct Recognition {
  uint64_t right = 0, unknown = 0, wrong = 0;

  uint64_t calls() const { return right + unknown + wrong; }
  double share_right() const {
    return calls() == 0 ? 0 : static_cast<double>(right) / static_cast<double>(calls());
  }
};

struct SequenceResult {
  std::string name;
  ZeroStage true_stage = ZeroStage::kUnknown;
  ZeroStage recognised_stage = ZeroStage::kUnknown;  // after the last call
  Recognition role, phase, stage;
};

struct StructureAccuracy {
  std::string recogniser;
  Recognition role, phase, stage;
  std::array<std::array<uint64_t, kRoles>, kRoles> role_confusion{};             // calls: [label][recognised]
  std::array<std::array<uint64_t, kZeroStages>, kZeroStages> stage_confusion{};  // calls
  std::vector<SequenceResult> sequences;
};

StructureAccuracy JudgePolicy(const Policy& policy, const std::vector<CallSequence>& sequences);
StructureAccuracy JudgeRules(const std::vector<CallSequence>& sequences);

}  // namespace dynamiccl::agents
