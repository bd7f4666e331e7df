// SPDX-License-Identifier: Apache-2.0
// The structure trigger agent: an LSTM over the calls of one communicator that says what the next call is
// for, which phase of the step the job is in, and which ZeRO stage it runs. Integers only: the same bits on
// every rank and machine.
#pragma once

#include <array>
#include <cstdint>

#include "src/collective/collective_call.h"
#include "src/fingerprint/call_token.h"
#include "src/policy/policy.h"

namespace dynamiccl {

// Activations with kTokenFractionBits fraction bits.
struct LstmState {
  alignas(64) int16_t hidden[kStructureHidden] = {};
  alignas(64) int16_t cell[kStructureHidden] = {};
};

using StructureLogits = std::array<int32_t, kHeadRows>;

// One step of the network; kTokenFractionBits fraction bits in the logits.
void StepLstm(const PolicyTensors& tensors, const CallToken& token, LstmState& state);
StructureLogits ComputeLogits(const PolicyTensors& tensors, const LstmState& state);

// What is recognised after a call, about the next one.
struct RecognisedStructure {
  std::array<Role, kTunableCollectives> next_role{};  // by Collective: its role if the next call is one
  Phase phase = Phase::kUnknown;
  ZeroStage stage = ZeroStage::kUnknown;

  friend bool operator==(const RecognisedStructure&, const RecognisedStructure&) = default;
};

// Of one communicator; `policy` must outlive it. One thread at a time; the call's own thread steps it after
// the launch.
class StructureTrigger {
 public:
  explicit StructureTrigger(const Policy& policy) : policy_(&policy) {}

  // Every call in program order (call number, then index in group).
  const RecognisedStructure& Step(const CollectiveCall& call);
  // All unknown before the first call.
  const RecognisedStructure& recognised() const { return recognised_; }

 private:
  void HoldStage(ZeroStage stage);

  const Policy* policy_;
  CallTokenizer tokenizer_;
  LstmState state_;
  RecognisedStructure recognised_;
  ZeroStage candidate_ = ZeroStage::kUnknown;
  int32_t candidate_calls_ = 0;
};

}  // namespace dynamiccl
