// SPDX-License-Identifier: Apache-2.0
// Converts float tensors to fixed-point integers, with a power of two as scale.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <cmath>
#include <cstdint>
#include <span>

namespace dynamiccl::agents {

// The largest number of fraction bits, at most `most` and at least 1, with which every weight fits into 16
// bits.
int FractionBits(const at::Tensor& weights, int most);

// Multiplies by 2^fraction_bits, rounds to nearest (ties to even) and clamps to the type's range without its
// lowest value, so that every value can be negated. The result is written in row-major order. If `target` has
// not as many elements as `values`, throws std::logic_error.
void Quantise(const at::Tensor& values, int fraction_bits, std::span<int16_t> target);
void Quantise(const at::Tensor& values, int fraction_bits, std::span<int32_t> target);

template <typename Array>
// Returns the elements of a C array with any number of dimensions as one span.
auto Flat(Array& array) {
  using Element = std::remove_all_extents_t<Array>;
  return std::span<Element>(reinterpret_cast<Element*>(&array), sizeof(Array) / sizeof(Element));
}

template <typename Array>
// Converts a C array of fixed-point integers to an fp32 tensor of the given sizes.
at::Tensor Dequantised(const Array& array, at::IntArrayRef sizes, int fraction_bits) {
  at::Tensor tensor = at::empty(sizes);
  float* value = tensor.data_ptr<float>();
  for (const auto integer : Flat(array)) *value++ = std::ldexp(static_cast<float>(integer), -fraction_bits);
  return tensor;
}

}  // namespace dynamiccl::agents
