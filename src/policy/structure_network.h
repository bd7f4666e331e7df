// SPDX-License-Identifier: Apache-2.0
// The structure LSTM of a policy, made ready to run. It uses integers only and gives the same bits on every
// rank and machine.
#pragma once

#include <array>
#include <cstdint>

#include "src/fingerprint/call_token.h"
#include "src/policy/policy.h"
#include "src/policy/structure_kernels.h"

namespace dynamiccl {

// The logits in the order of the file's rows.
using StructureLogits = std::array<int32_t, kHeadRows>;

// Each lane holds the winning class plus 1, or 0 where none leads by its margin.
struct StructureWinners {
  alignas(64) int32_t lanes[kHeadLanes];
};

// The sets of vector instructions, in ascending order of preference.
enum class VectorSet { kPortable, kAvx2 };
inline constexpr VectorSet kVectorSets[] = {VectorSet::kPortable, VectorSet::kAvx2};
// Returns whether this program has the set and this CPU runs it.
bool Runs(VectorSet set);

// A copy of what a step needs, 24 KiB, in the order of the kernels. Immutable, so any number of communicators
// and threads share one. Nothing in it can fail.
class StructureNetwork {
 public:
  // Uses the best set that runs.
  explicit StructureNetwork(const PolicyTensors& tensors);
  // `set` must run on this machine.
  StructureNetwork(const PolicyTensors& tensors, VectorSet set);

  // One step of the network. State and logits have kTokenFractionBits fraction bits.
  void Step(const CallToken& token, LstmState& state) const { kernels_->step(packed_, token.data(), state); }
  // The answers after a step. `next` receives which call is expected to come.
  StructureWinners Recognise(const LstmState& state, NextCall& next) const {
    StructureWinners winners;
    kernels_->recognise(packed_, state, winners.lanes, next);
    return winners;
  }
  // The values that Recognise compares.
  StructureLogits Logits(const LstmState& state) const;
  const StructureThresholds& thresholds() const { return thresholds_; }
  // Tests and measurements of a part of a step use these two.
  const StructureKernels& kernels() const { return *kernels_; }
  const PackedStructure& packed() const { return packed_; }

 private:
  PackedStructure packed_{};
  const StructureKernels* kernels_;
  StructureThresholds thresholds_;
};

}  // namespace dynamiccl
