// SPDX-License-Identifier: Apache-2.0
// The structure trigger agent: an LSTM over the calls of one communicator that says what the next call is
// for, which phase of the step the job is in, and which ZeRO stage it runs.
#pragma once

#include <cstdint>
#include <memory>

#include "src/collective/collective_call.h"
#include "src/policy/policy.h"
#include "src/policy/seen_calls.h"
#include "src/policy/structure_network.h"
#include "src/policy/visited_states.h"

namespace dynamiccl {

// The role of the next call, which is such a collective of so many bytes. A tiny AllReduce is a scalar
// whatever came before it.
inline Role RoleOfNext(const RecognisedStructure& recognised, Collective collective, uint64_t bytes) {
  if (collective == Collective::kAllReduce && bytes <= kTinyBytes) return Role::kScalar;
  return recognised.next_role[static_cast<size_t>(collective)];
}

// Of one communicator. One thread at a time; the call's own thread steps it after the launch.
class StructureTrigger {
 public:
  // A policy that was read has its network ready; of another one it is made here.
  explicit StructureTrigger(const Policy& policy);

  // Every call in program order (call number, then index in group). No allocation.
  const RecognisedStructure& Step(const CollectiveCall& call) {
    ++calls_;
    const RecognisedStructure* const known = visited_.Follow(call);
    return known == nullptr ? Compute(call) : recognised_ = *known;
  }
  // As new, of another policy. Allocates nothing for one that was read.
  void Restart(const Policy& policy);
  // Its communicator is gone; see VisitedStates.
  void GiveMemoryBack() { visited_.GiveMemoryBack(); }
  // All unknown before the first call.
  const RecognisedStructure& recognised() const { return recognised_; }

 private:
  const RecognisedStructure& Compute(const CollectiveCall& call);
  void HoldStage(ZeroStage stage);
  // Both before the step over the call.
  int32_t SurpriseOf(const CollectiveCall& call) const;
  bool ShapeChanges(const CollectiveCall& call);

  VisitedStates visited_;
  RecognisedStructure recognised_;
  StructureState state_;  // as visited_ was told last
  SeenCalls seen_;
  uint64_t calls_ = 0;
  std::shared_ptr<const StructureNetwork> network_;
};

}  // namespace dynamiccl
