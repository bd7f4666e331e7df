// SPDX-License-Identifier: Apache-2.0
#include "src/policy/structure_inference.h"

namespace dynamiccl {
namespace {

std::shared_ptr<const StructureNetwork> NetworkOf(const Policy& policy) {
  return policy.structure_network ? policy.structure_network
                                  : std::make_shared<const StructureNetwork>(policy.tensors);
}

}  // namespace

StructureTrigger::StructureTrigger(const Policy& policy) : network_(NetworkOf(policy)) {}

void StructureTrigger::Restart(const Policy& policy) {
  network_ = NetworkOf(policy);
  visited_.Forget();
  state_ = {};
  recognised_ = {};
}

const RecognisedStructure& StructureTrigger::Compute(const CollectiveCall& call) {
  visited_.Refresh(state_);
  network_->Step(state_.tokenizer.Next(call), state_.network);
  const StructureWinners winners = network_->Recognise(state_.network);
  for (size_t c = 0; c < kTunableCollectives; ++c)
    state_.recognised.next_role[c] = static_cast<Role>(winners.lanes[c]);
  state_.recognised.phase = static_cast<Phase>(winners.lanes[kPhaseLane]);
  const int32_t stage = winners.lanes[kStageLane];
  HoldStage(stage == 0 ? ZeroStage::kUnknown : static_cast<ZeroStage>(stage - 1));
  visited_.Arrived(call, state_);
  return recognised_ = state_.recognised;
}

void StructureTrigger::HoldStage(ZeroStage stage) {
  const int32_t hold = network_->stage_hold_calls();
  state_.candidate_calls = stage == state_.candidate ? state_.candidate_calls + 1 : 1;
  state_.candidate = stage;
  if (state_.candidate_calls < hold) return;
  state_.candidate_calls = hold;  // so that the count cannot overflow
  state_.recognised.stage = stage;
}

}  // namespace dynamiccl
