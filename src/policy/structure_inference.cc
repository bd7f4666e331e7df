// SPDX-License-Identifier: Apache-2.0
#include "src/policy/structure_inference.h"

#include <algorithm>
#include <cstring>

#include "src/policy/fixed_point.h"

namespace dynamiccl {
namespace {

// Pre-activations are cut to the table's range, so the index needs no further check.
size_t TableIndex(int32_t pre_activation, int shift) {
  const int32_t half = kTableEntries / 2;
  return static_cast<size_t>(std::clamp(RoundShift(pre_activation, shift), -half, half - 1) + half);
}

// Index of the largest of `count` logits, or -1 where it does not lead by `margin`. The first of equals has
// no lead.
int Winner(const int32_t* logits, int count, int32_t margin) {
  int best = 0;
  for (int i = 1; i < count; ++i) {
    if (logits[i] > logits[best]) best = i;
  }
  for (int i = 0; i < count; ++i) {
    // 64 bits: a difference of two int32 may not fit.
    if (i != best && static_cast<int64_t>(logits[best]) - logits[i] < margin) return -1;
  }
  return best;
}

}  // namespace

void StepLstm(const PolicyTensors& tensors, const CallToken& token, LstmState& state) {
  constexpr int kN = kStructureHidden;
  alignas(64) int16_t input[kGateColumns];
  std::memcpy(input, token.data(), sizeof(CallToken));
  std::memcpy(input + kTokenFeatures, state.hidden, sizeof(state.hidden));

  const int shift = kTokenFractionBits + tensors.structure.gate_fraction_bits - kTableFractionBits;
  int32_t sums[kGateRows];
  for (int row = 0; row < kGateRows; ++row) {
    sums[row] = Dot<kGateColumns>(tensors.gate_weights[row], input) + tensors.gate_bias[row];
  }
  for (int unit = 0; unit < kN; ++unit) {
    const int32_t in = tensors.sigmoid_table[TableIndex(sums[unit], shift)];
    const int32_t forget = tensors.sigmoid_table[TableIndex(sums[kN + unit], shift)];
    const int32_t candidate = tensors.tanh_table[TableIndex(sums[2 * kN + unit], shift)];
    const int32_t out = tensors.sigmoid_table[TableIndex(sums[3 * kN + unit], shift)];
    // At most 2^30 + 2^27: fits.
    const int32_t cell = RoundShift(forget * state.cell[unit] + in * candidate, kGateOneBits);
    state.cell[unit] = static_cast<int16_t>(std::clamp(cell, -32767, 32767));
    const int32_t squashed =
        tensors.tanh_table[TableIndex(state.cell[unit], kTokenFractionBits - kTableFractionBits)];
    state.hidden[unit] = static_cast<int16_t>(RoundShift(out * squashed, kGateOneBits));
  }
}

StructureLogits ComputeLogits(const PolicyTensors& tensors, const LstmState& state) {
  StructureLogits logits;
  for (int row = 0; row < kHeadRows; ++row) {
    const int32_t sum =
        Dot<kStructureHidden>(tensors.head_weights[row], state.hidden) + tensors.head_bias[row];
    logits[static_cast<size_t>(row)] = RoundShift(sum, tensors.structure.head_fraction_bits);
  }
  return logits;
}

const RecognisedStructure& StructureTrigger::Step(const CollectiveCall& call) {
  const StructureThresholds& thresholds = policy_->tensors.structure;
  StepLstm(policy_->tensors, tokenizer_.Next(call), state_);
  const StructureLogits logits = ComputeLogits(policy_->tensors, state_);
  for (size_t c = 0; c < kTunableCollectives; ++c) {
    const int role = Winner(logits.data() + c * kRoleClasses, kRoleClasses, thresholds.role_margin);
    recognised_.next_role[c] = static_cast<Role>(role + 1);
  }
  const int phase = Winner(logits.data() + kPhaseRow, kPhaseClasses, thresholds.phase_margin);
  recognised_.phase = static_cast<Phase>(phase + 1);
  const int stage = Winner(logits.data() + kStageRow, kStageClasses, thresholds.stage_margin);
  HoldStage(stage < 0 ? ZeroStage::kUnknown : static_cast<ZeroStage>(stage));
  return recognised_;
}

void StructureTrigger::HoldStage(ZeroStage stage) {
  candidate_calls_ = stage == candidate_ ? candidate_calls_ + 1 : 1;
  candidate_ = stage;
  if (candidate_calls_ < policy_->tensors.structure.stage_hold_calls) return;
  candidate_calls_ = policy_->tensors.structure.stage_hold_calls;  // so that the count cannot overflow
  recognised_.stage = stage;
}

}  // namespace dynamiccl
