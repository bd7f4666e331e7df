// SPDX-License-Identifier: Apache-2.0
// The structure LSTM in plain loops, for every machine. It defines the results.
#include "src/policy/structure_kernels.h"

namespace dynamiccl {
namespace {

constexpr int kVectorBytes = 16;

template <int kRows>
void SumPairs(const int16_t* weights, const int32_t* bias, const int16_t* inputs, int pairs, int32_t* sums) {
  for (int row = 0; row < kRows; ++row) sums[row] = bias[row];
  for (int pair = 0; pair < pairs; ++pair, weights += 2 * kRows) {
    const int32_t first = inputs[2 * pair], second = inputs[2 * pair + 1];
    // A third of a token's pairs of inputs are zero, so skipping them saves time.
    if (first == 0 && second == 0) continue;
    for (int row = 0; row < kRows; ++row)
      sums[row] += weights[2 * row] * first + weights[2 * row + 1] * second;
  }
}

#include "src/policy/structure_answers.inc"

void Gates(const PackedStructure& network, const int16_t* token, const LstmState& state, int32_t* sums) {
  int16_t inputs[kGateColumns];
  __builtin_memcpy(inputs, token, kTokenFeatures * sizeof(int16_t));
  __builtin_memcpy(inputs + kTokenFeatures, state.hidden, sizeof(state.hidden));
  for (int block = 0; block < kUnitBlocks; ++block) {
    SumPairs<kBlockRows>(&network.gate_weights[block][0][0][0], network.gate_bias[block], inputs, kGatePairs,
                         sums + block * kBlockRows);
  }
}

inline int32_t Rounded(int32_t value, int bits) {
  return (value + (1 << (bits - 1))) >> bits;
}
inline int32_t Within(int32_t value, int32_t low, int32_t high) {
  return value < low ? low : value > high ? high : value;
}
// Returns the function's value at a sum. Outside of the table's range this is the first or the last entry.
inline int32_t ValueAt(const int16_t* table, int32_t sum, int shift) {
  constexpr int32_t kHalf = kTableEntries / 2;
  return table[Within(Rounded(sum, shift), -kHalf, kHalf - 1) + kHalf];
}

// Computes the new cell and hidden state of one unit. `sums` points at the unit's row of the first gate in
// its block.
inline void Activate(const PackedStructure& network, const int32_t* sums, int32_t& cell, int16_t& hidden) {
  const int32_t in = ValueAt(network.sigmoid_table, sums[0], network.gate_shift);
  const int32_t forget = ValueAt(network.sigmoid_table, sums[kBlockUnits], network.gate_shift);
  const int32_t candidate = ValueAt(network.tanh_table, sums[2 * kBlockUnits], network.gate_shift);
  const int32_t out = ValueAt(network.sigmoid_table, sums[3 * kBlockUnits], network.gate_shift);
  // The sum is at most 2^30 + 2^27, so it fits in int32.
  cell = Within(Rounded(forget * cell + in * candidate, kGateOneBits), -kCellLimit, kCellLimit);
  const int32_t squashed = ValueAt(network.tanh_table, cell, kTokenFractionBits - kTableFractionBits);
  hidden = static_cast<int16_t>(Rounded(out * squashed, kGateOneBits));
}

void Step(const PackedStructure& network, const int16_t* token, LstmState& state) {
  alignas(64) int32_t sums[kGateRows];
  Gates(network, token, state, sums);
  for (int unit = 0; unit < kStructureHidden; ++unit) {
    const int row = unit / kBlockUnits * kBlockRows + unit % kBlockUnits;
    Activate(network, sums + row, state.cell[unit], state.hidden[unit]);
  }
}

}  // namespace

const StructureKernels kPortableStructure = {Step, Gates, Logits, Recognise};

}  // namespace dynamiccl
