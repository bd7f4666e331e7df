// SPDX-License-Identifier: Apache-2.0
// The rules: the first call reveals the stage, and a scalar ends a step. A step that has reduced as many
// bytes as the previous step is in its optimizer phase.
#include "agents/evaluation/structure_rules.h"

namespace dynamiccl::agents {
namespace {

bool IsGradientReduce(const CollectiveCall& call) {
  const bool reduces =
      call.collective == Collective::kAllReduce || call.collective == Collective::kReduceScatter;
  return reduces && call.bytes > kTinyBytes;
}

}  // namespace

const RecognisedStructure& StructureRules::Step(const CollectiveCall& call) {
  const bool scalar = call.bytes <= kTinyBytes;
  const bool gather = call.collective == Collective::kAllGather, reduce = IsGradientReduce(call);
  // The first call reveals the stage: an AllReduce of gradients means stage 0, a ReduceScatter of gradients
  // means stage 2, and an AllGather before any gradients means stage 3.
  if (stage_ == ZeroStage::kUnknown && reduce) {
    stage_ = call.collective == Collective::kAllReduce ? ZeroStage::kStage0 : ZeroStage::kStage2;
  }
  if (stage_ == ZeroStage::kUnknown && gather) stage_ = ZeroStage::kStage3;
  // An AllGather between two reductions of one step gathers parameters, so the stage is 3.
  if (stage_ == ZeroStage::kStage2 && gather && reduce_since_scalar_) stage_ = ZeroStage::kStage3;

  if (scalar && reduced_ > 0) reduced_a_step_ = reduced_;
  if (scalar) reduced_ = 0;
  if (reduce) reduced_ += call.bytes;
  gather_since_scalar_ = !scalar && (gather_since_scalar_ || gather);
  reduce_since_scalar_ = !scalar && (reduce_since_scalar_ || reduce);
  recognised_.stage = stage_;
  SetNextRoles();
  return recognised_;
}

void StructureRules::SetNextRoles() {
  const bool all_reduced = reduced_a_step_ > 0 && reduced_ >= reduced_a_step_;
  const bool stage3 = stage_ == ZeroStage::kStage3, stage0 = stage_ == ZeroStage::kStage0;
  auto& role = recognised_.next_role;
  role[static_cast<size_t>(Collective::kAllGather)] = stage3 ? Role::kParameterGather : Role::kPostStepGather;
  role[static_cast<size_t>(Collective::kReduceScatter)] = Role::kGradientReduce;
  role[static_cast<size_t>(Collective::kAllReduce)] =
      stage0 && !all_reduced ? Role::kGradientReduce : Role::kScalar;
  role[static_cast<size_t>(Collective::kBroadcast)] = Role::kOther;
  role[static_cast<size_t>(Collective::kReduce)] = Role::kGradientReduce;
  if (all_reduced) {
    recognised_.phase = Phase::kOptimizer;
  } else if (reduce_since_scalar_ || stage0) {
    recognised_.phase = Phase::kBackward;
  } else {
    recognised_.phase = stage3 ? Phase::kForward : Phase::kOptimizer;
  }
}

}  // namespace dynamiccl::agents
