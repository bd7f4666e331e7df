// SPDX-License-Identifier: Apache-2.0
// The structure LSTM of a policy, ready to run. It uses only integers and gives the same bits on every rank
// and machine.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "src/fingerprint/call_token.h"
#include "src/policy/fixed_point.h"
#include "src/policy/policy.h"
#include "src/policy/structure_kernels.h"

namespace dynamiccl {

// The values of the output layers (heads) before the decision, in the order in which the policy file has
// their rows.
using StructureLogits = std::array<int32_t, kHeadRows>;

// For each lane, 1 + the winning class, or 0 if no class leads by the lane's margin.
struct StructureWinners {
  alignas(64) int32_t lanes[kHeadLanes];
};

// The sets of vector instructions, in ascending order of preference.
enum class VectorSet { kPortable, kAvx2 };
inline constexpr VectorSet kVectorSets[] = {VectorSet::kPortable, VectorSet::kAvx2};
// Returns true if this program was built with the set and this CPU supports it.
bool Runs(VectorSet set);

// A copy of the weights and tables that a step needs, 24 KiB, in the order of the kernels. It is immutable,
// so any number of communicators and threads share one. No function can fail.
class StructureNetwork {
 public:
  // Cells are rounded to multiples of 2^kCellStepBits, an eighth of 1.0. Otherwise a cell that keeps nearly
  // all of its value creeps for thousands of calls. A repeated training step then does not repeat its state
  // (visited_states.h), and in steps with more calls than those of the training the cell ends far from where
  // training left it. With half this rounding, states take longer to repeat. With twice this rounding,
  // briefly trained networks recognise less (docs/results/agents-structure.md).
  static constexpr int kCellStepBits = 9;
  static void RoundCells(LstmState& state) {
    constexpr int32_t kLimit = kCellLimit >> kCellStepBits;
    for (int32_t& cell : state.cell)
      cell = std::clamp(RoundShift(cell, kCellStepBits), -kLimit, kLimit) * (1 << kCellStepBits);
  }

  // Makes the network with the best set of vector instructions that runs here.
  explicit StructureNetwork(const PolicyTensors& tensors);
  // Makes the network with the given set, which must run on this machine.
  StructureNetwork(const PolicyTensors& tensors, VectorSet set);

  // Does one step of the network. State and logits have kTokenFractionBits fraction bits.
  void Step(const CallToken& token, LstmState& state) const { kernels_->step(packed_, token.data(), state); }
  // Does a step over a job's call: first Step, then the cells are rounded (RoundCells).
  void StepOverCall(const CallToken& token, LstmState& state) const {
    Step(token, state);
    RoundCells(state);
  }
  // Returns the answers after a step, and fills `next` with the expected next call.
  StructureWinners Recognise(const LstmState& state, NextCall& next) const {
    StructureWinners winners;
    kernels_->recognise(packed_, state, winners.lanes, next);
    return winners;
  }
  // Returns the values that Recognise compares.
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
