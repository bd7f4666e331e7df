// SPDX-License-Identifier: Apache-2.0
// A simple baseline for the structure agent: a few rules that a person would write for ZeRO's collectives.
#pragma once

#include <cstdint>

#include "src/policy/structure_inference.h"

namespace dynamiccl::agents {

// Has the same interface as StructureAgent; use one object for each communicator.
class StructureRules {
 public:
  const RecognisedStructure& Step(const CollectiveCall& call);
  const RecognisedStructure& recognised() const { return recognised_; }

 private:
  void SetNextRoles();

  RecognisedStructure recognised_;
  ZeroStage stage_ = ZeroStage::kUnknown;
  bool gather_since_scalar_ = false, reduce_since_scalar_ = false;
  // Bytes of gradients that were reduced in this step.
  uint64_t reduced_ = 0;
  // Bytes of gradients that were reduced in the previous step.
  uint64_t reduced_a_step_ = 0;
};

}  // namespace dynamiccl::agents
