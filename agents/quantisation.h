// SPDX-License-Identifier: Apache-2.0
// Float tensors to integers with a power of two as scale.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

namespace dynamiccl::agents {

// The most fraction bits, at most `most`, with which every weight fits into 16 bits; 1 at least.
int FractionBits(const at::Tensor& weights, int most);

// Rounds to nearest with `fraction_bits`, cuts to the type's range without its lowest value, and writes row
// by row. `target` has as many elements as `values`.
void Quantise(const at::Tensor& values, int fraction_bits, std::span<int16_t> target);
void Quantise(const at::Tensor& values, int fraction_bits, std::span<int32_t> target);

// The elements of a C array of any rank.
template <typename Array>
auto Flat(Array& array) {
  using Element = std::remove_all_extents_t<Array>;
  return std::span<Element>(reinterpret_cast<Element*>(&array), sizeof(Array) / sizeof(Element));
}

}  // namespace dynamiccl::agents
