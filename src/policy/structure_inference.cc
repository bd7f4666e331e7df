// SPDX-License-Identifier: Apache-2.0
// One step of the structure agent: the network's answer, the stage, and the two signs of change. A new stage
// is reported only when it has won often enough. The signs are an unlikely call, and a new shape after a long
// time without one.
#include "src/policy/structure_inference.h"

namespace dynamiccl {
namespace {

std::shared_ptr<const StructureNetwork> NetworkOf(const Policy& policy) {
  return policy.structure_network ? policy.structure_network
                                  : std::make_shared<const StructureNetwork>(policy.tensors);
}

}  // namespace

StructureAgent::StructureAgent(const Policy& policy) : network_(NetworkOf(policy)) {}

void StructureAgent::Restart(const Policy& policy) {
  network_ = NetworkOf(policy);
  visited_.Forget();
  state_ = {};
  recognised_ = {};
  seen_.Forget();
  calls_ = 0;
}

const RecognisedStructure& StructureAgent::Compute(const CollectiveCall& call) {
  visited_.Refresh(state_);
  const int32_t surprise = SurpriseOf(call);
  const bool shape_changes = ShapeChanges(call);
  network_->StepOverCall(state_.tokenizer.Next(call), state_.network);
  const StructureWinners winners = network_->Recognise(state_.network, state_.next);
  for (size_t c = 0; c < kTunableCollectives; ++c)
    state_.recognised.next_role[c] = static_cast<Role>(winners.lanes[c]);
  state_.recognised.phase = static_cast<Phase>(winners.lanes[kPhaseLane]);
  const int32_t stage = winners.lanes[kStageLane];
  HoldStage(stage == 0 ? ZeroStage::kUnknown : static_cast<ZeroStage>(stage - 1));
  state_.recognised.surprise = static_cast<uint16_t>(surprise);
  // Only the surprise is stored with the state. A call that is later answered from memory has no new shape,
  // so the other sign of change cannot occur then.
  state_.recognised.changed = surprise >= network_->thresholds().surprise;
  visited_.AddTransition(call, state_);
  recognised_ = state_.recognised;
  recognised_.changed |= shape_changes;
  return recognised_;
}

bool StructureAgent::ShapeChanges(const CollectiveCall& call) {
  // This must come before IsNew below, because IsNew resets CallsSinceNew.
  const bool settled =
      seen_.CallsSinceNew(calls_) > static_cast<uint64_t>(network_->thresholds().settled_calls);
  if (!seen_.IsNew(call, calls_) || !settled) return false;
  // The shapes of the changed job get a fresh set. The known states are forgotten too, because calls that are
  // answered from memory would not reach seen_ again.
  seen_.Forget();
  seen_.IsNew(call, calls_);
  visited_.Forget();
  return true;
}

int32_t StructureAgent::SurpriseOf(const CollectiveCall& call) const {
  const auto collective = static_cast<size_t>(NextCollectiveClass(call.collective));
  const auto size = static_cast<size_t>(NextSizeClass(call.bytes));
  return state_.next.collective[collective] + state_.next.size[size];
}

// Reports a stage once it has won for stage_hold_calls calls in a row.
void StructureAgent::HoldStage(ZeroStage stage) {
  const int32_t hold = network_->thresholds().stage_hold_calls;
  state_.candidate_calls = stage == state_.candidate ? state_.candidate_calls + 1 : 1;
  state_.candidate = stage;
  if (state_.candidate_calls < hold) return;
  state_.candidate_calls = hold;  // keeps the count from overflowing
  state_.recognised.stage = stage;
}

}  // namespace dynamiccl
