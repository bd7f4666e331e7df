// SPDX-License-Identifier: Apache-2.0
// The structure trigger agent: an LSTM over the calls of one communicator that says what the next call is
// for, which phase of the step the job is in, and which ZeRO stage it runs.
#pragma once

#include <cstdint>
#include <memory>

#include "src/collective/collective_call.h"
#include "src/policy/policy.h"
#include "src/policy/structure_network.h"
#include "src/policy/visited_states.h"

namespace dynamiccl {

// Of one communicator. One thread at a time; the call's own thread steps it after the launch.
class StructureTrigger {
 public:
  // A policy that was read has its network ready; of another one it is made here.
  explicit StructureTrigger(const Policy& policy);

  // Every call in program order (call number, then index in group). No allocation.
  const RecognisedStructure& Step(const CollectiveCall& call) {
    const RecognisedStructure* const known = visited_.Follow(call);
    return known == nullptr ? Compute(call) : recognised_ = *known;
  }
  // As new, of another policy. Allocates nothing for one that was read.
  void Restart(const Policy& policy);
  // All unknown before the first call.
  const RecognisedStructure& recognised() const { return recognised_; }

 private:
  const RecognisedStructure& Compute(const CollectiveCall& call);
  void HoldStage(ZeroStage stage);

  VisitedStates visited_;
  RecognisedStructure recognised_;
  StructureState state_;  // as visited_ was told last
  std::shared_ptr<const StructureNetwork> network_;
};

}  // namespace dynamiccl
