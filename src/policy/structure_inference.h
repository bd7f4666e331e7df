// SPDX-License-Identifier: Apache-2.0
// The structure agent: an LSTM over the calls of one communicator. It predicts the role of the next call, the
// phase of the step and the job's ZeRO stage. It uses only integers, and only values that are equal on all
// ranks, so all ranks recognise the same.
#pragma once

#include <cstdint>
#include <memory>

#include "src/collective/collective_call.h"
#include "src/policy/policy.h"
#include "src/policy/seen_shapes.h"
#include "src/policy/structure_network.h"
#include "src/policy/visited_states.h"

namespace dynamiccl {

// Returns the role of the next call, given its collective and bytes. A tiny AllReduce is a scalar whatever
// came before it.
inline Role RoleOfNext(const RecognisedStructure& recognised, Collective collective, uint64_t bytes) {
  if (collective == Collective::kAllReduce && bytes <= kTinyBytes) return Role::kScalar;
  return recognised.next_role[static_cast<size_t>(collective)];
}

// Returns the role of the next call as a key has it: a parameter gather in the backward phase is a role of
// its own.
inline Role KeyRoleOfNext(const RecognisedStructure& recognised, Collective collective, uint64_t bytes) {
  const Role role = RoleOfNext(recognised, collective, bytes);
  const bool backward = role == Role::kParameterGather && recognised.phase == Phase::kBackward;
  return backward ? Role::kBackwardGather : role;
}

// The agent of one communicator. One thread at a time: the call's own thread steps it after the launch. After
// construction a step allocates nothing and cannot fail.
class StructureAgent {
 public:
  // If `policy` was read from a file, its network exists already; for another policy the network is made
  // here. `policy` need not outlive the agent.
  explicit StructureAgent(const Policy& policy);

  // Call it for every call in program order (call number, then index in group). A call that leads from a
  // known state to a known one is answered from memory (visited_states.h).
  const RecognisedStructure& Step(const CollectiveCall& call) {
    ++calls_;
    const RecognisedStructure* const known = visited_.Follow(call);
    return known == nullptr ? Compute(call) : recognised_ = *known;
  }
  // Starts anew with another policy. Allocates nothing if that policy was read from a file.
  void Restart(const Policy& policy);
  // Call this when the communicator is gone; see VisitedStates.
  void ReleaseMemory() { visited_.ReleaseMemory(); }
  // The latest answer; all unknown before the first call.
  const RecognisedStructure& recognised() const { return recognised_; }

 private:
  const RecognisedStructure& Compute(const CollectiveCall& call);
  void HoldStage(ZeroStage stage);
  // These two must be called before the network steps over the call.
  int32_t SurpriseOf(const CollectiveCall& call) const;
  bool ShapeChanges(const CollectiveCall& call);

  VisitedStates visited_;
  RecognisedStructure recognised_;
  StructureState state_;  // the state that visited_ received last
  SeenShapes seen_;
  uint64_t calls_ = 0;
  std::shared_ptr<const StructureNetwork> network_;
};

}  // namespace dynamiccl
