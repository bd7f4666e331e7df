// SPDX-License-Identifier: Apache-2.0
// The structure LSTM in plain loops, for every machine.
#include "src/policy/structure_kernels.h"

namespace dynamiccl {
namespace {

constexpr int kVectorBytes = 16;

template <int kRows>
void SumPairs(const int16_t* weights, const int32_t* bias, const int16_t* inputs, int pairs, int32_t* sums) {
  for (int row = 0; row < kRows; ++row) sums[row] = bias[row];
  for (int pair = 0; pair < pairs; ++pair) {
    const int32_t first = inputs[2 * pair], second = inputs[2 * pair + 1];
    for (int row = 0; row < kRows; ++row)
      sums[row] += weights[2 * row] * first + weights[2 * row + 1] * second;
    weights += 2 * kRows;
  }
}

#include "src/policy/structure_step.inc"

}  // namespace

const StructureKernels kPortableStructure = {Step, Logits, Recognise};

}  // namespace dynamiccl
