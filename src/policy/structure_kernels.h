// SPDX-License-Identifier: Apache-2.0
// The arithmetic of the structure LSTM, once for each set of vector instructions. Every set gives the same
// bits: no sum of integers can overflow, so the order of the additions does not matter.
//
// Each set is a file with its own machine options. Such a file must not use inline functions from other
// files: the linker could keep this file's copy for the whole program, which then fails on other CPUs.
//
// One step, for each unit, with i, f, g, o = sums of weights times (token, hidden state) plus bias:
//   cell   = sigmoid(f) * cell + sigmoid(i) * tanh(g)
//   hidden = sigmoid(o) * tanh(cell)
#pragma once

#include <cstdint>

#include "src/policy/structure_layout.h"

namespace dynamiccl {

// A block is the rows of all four gates of 16 units. Its 64 sums of 32 bits fill eight registers of 32 bytes.
inline constexpr int kBlockUnits = 16;
inline constexpr int kBlockRows = 4 * kBlockUnits;
inline constexpr int kUnitBlocks = kStructureHidden / kBlockUnits;
inline constexpr int kGatePairs = kGateColumns / 2;
static_assert(kStructureHidden % kBlockUnits == 0 && kGateColumns % 2 == 0);

// The answers of the heads (output layers) lie side by side in lanes. For each collective, one lane holds the
// role that the next call has if it is this collective. Then follow one lane each for the phase, the stage
// and the next collective.
inline constexpr int kHeadLanes = 8;
inline constexpr int kPhaseLane = kTunableCollectives;
inline constexpr int kStageLane = kPhaseLane + 1;
inline constexpr int kNextCollectiveLane = kStageLane + 1;
inline constexpr int kLaneClasses = kRoleClasses;  // the largest number of classes in any lane
inline constexpr int kLaneRows = kLaneClasses * kHeadLanes;
inline constexpr int kPackedHeadRows = kLaneRows + kNextSizeClasses;
inline constexpr int kHeadPairs = kStructureHidden / 2;
static_assert(kNextCollectiveLane < kHeadLanes && kPhaseClasses <= kLaneClasses &&
              kStageClasses <= kLaneClasses && kNextCollectiveClasses <= kLaneClasses);
static_assert(kNextSizeClasses % 8 == 0);

// The network in the order in which a step reads it. The weights of all rows for two neighbouring columns lie
// side by side, for instructions that multiply pairs of int16 and add the two products. Made once for a
// policy and immutable.
struct PackedStructure {
  alignas(64) int16_t gate_weights[kUnitBlocks][kGatePairs][kBlockRows][2];
  alignas(64) int32_t gate_bias[kUnitBlocks][kBlockRows];
  // Rows: first the first class of every lane, then the second class of every lane, and so on; at the end the
  // sizes of the next call.
  alignas(64) int16_t head_weights[kHeadPairs][kPackedHeadRows][2];
  // The biases. Rows without a class have INT32_MIN, so that they never win.
  alignas(64) int32_t head_bias[kPackedHeadRows];
  alignas(64) int32_t margin[kHeadLanes];  // at least 1
  int32_t gate_shift = 0;                  // right shift from the gates' sums to steps of the tables
  int32_t head_shift = 0;                  // right shift from the heads' sums to logits
  alignas(64) int16_t sigmoid_table[kTableEntries];
  alignas(64) int16_t tanh_table[kTableEntries];
};

// Largest magnitude of a cell, with kTokenFractionBits fraction bits. This limit lets instructions for int16
// multiply a cell.
inline constexpr int32_t kCellLimit = 32767;
// The state between two steps; a plain value.
struct LstmState {
  alignas(64) int16_t hidden[kStructureHidden] = {};
  alignas(64) int32_t cell[kStructureHidden] = {};  // each within kCellLimit

  friend bool operator==(const LstmState&, const LstmState&) = default;
};

// Unlikelihood of a next collective or size: the logit of the likeliest one minus its own, with this many
// fraction bits, clamped to int16.
inline constexpr int kUnlikelihoodFractionBits = 8;
// The unlikelihood of each next collective and size.
struct NextCall {
  int16_t collective[kNextCollectiveClasses] = {};
  int16_t size[kNextSizeClasses] = {};

  friend bool operator==(const NextCall&, const NextCall&) = default;
};

// The functions of one set. All of them write only to their arguments.
struct StructureKernels {
  // Does one step of the network. `token` has kTokenFeatures values.
  void (*step)(const PackedStructure& network, const int16_t* token, LstmState& state);
  // Does the first part of a step, for tests and measurements. `sums` has kGateRows values in the order of
  // gate_bias and is 64-byte aligned.
  void (*gates)(const PackedStructure& network, const int16_t* token, const LstmState& state, int32_t* sums);
  // Computes the values of the heads. `logits` has kPackedHeadRows values and is 64-byte aligned.
  void (*logits)(const PackedStructure& network, const LstmState& state, int32_t* logits);
  // Finds the answer of each lane. `winners`, 64-byte aligned, gets 1 + the class whose logit leads all
  // others by the lane's margin; 0 if none does.
  void (*recognise)(const PackedStructure& network, const LstmState& state, int32_t* winners, NextCall& next);
};

// The kernels in plain loops, which define the results.
extern const StructureKernels kPortableStructure;
// Exists on x86-64 only. May only be used on CPUs with AVX2.
extern const StructureKernels kAvx2Structure;

}  // namespace dynamiccl
