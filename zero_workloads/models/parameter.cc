// SPDX-License-Identifier: Apache-2.0
// First values come from the counter-based generator Philox4x32-10 (Salmon et al., SC 2011): the key is the
// seed, the subsequence a hash of the parameter's name, the counter the index of the element. Box-Muller
// turns two uniform numbers into a normal one. The generator has no state that ranks would have to share.
#include "zero_workloads/models/parameter.h"

#include <ATen/core/PhiloxRNGEngine.h>
#include <ATen/ops/cat.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>

namespace dynamiccl::zero {
namespace {

// Box-Muller on two of the four 32-bit numbers of one counter value. `u` lies in (0, 1], which keeps the
// logarithm finite.
float Normal(uint64_t seed, uint64_t subsequence, int64_t index) {
  at::Philox4_32 engine(seed, subsequence, static_cast<uint64_t>(index));
  const double u = (engine() + 1.0) * 0x1p-32;
  const double v = engine() * 0x1p-32;
  return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v));
}

int64_t Product(std::span<const int64_t> extents) {
  int64_t product = 1;
  for (const int64_t extent : extents) product *= extent;
  return product;
}

}  // namespace

int64_t ParameterSlot::Elements() const {
  return Product(shape);
}

int64_t ParameterSlot::GlobalElements() const {
  return sliced() ? Product(global_shape) : Elements();
}

int64_t ParameterSlot::GlobalIndex(int64_t index) const {
  if (!sliced()) return index;
  const std::span whole(global_shape);
  const size_t dimension = static_cast<size_t>(slice_dimension);
  const int64_t inner = Product(whole.subspan(dimension + 1));
  // Number of elements of the slice for each index of the dimensions before `slice_dimension`.
  const int64_t slice = Elements() / Product(whole.first(dimension));
  return index / slice * whole[dimension] * inner + slice_begin * inner + index % slice;
}

at::Tensor ParameterSlot::Assemble(std::span<const at::Tensor> slices) const {
  if (!sliced()) return slices.front().flatten();
  std::vector<int64_t> extents = global_shape;
  extents[static_cast<size_t>(slice_dimension)] = -1;  // slices may differ in extent
  std::vector<at::Tensor> parts;
  for (const at::Tensor& slice : slices) parts.push_back(slice.view(extents));
  return at::cat(parts, slice_dimension).flatten();
}

void FillInitialValues(const ParameterSlot& parameter, uint64_t seed, int64_t begin, int64_t end,
                       float* values) {
  if (parameter.values.defined()) {
    const float* first = parameter.values.const_data_ptr<float>();
    std::copy(first + begin, first + end, values);
    return;
  }
  const auto [mean, deviation] = parameter.initialisation;
  const uint64_t subsequence = XXH3_64bits(parameter.name.data(), parameter.name.size());
  for (int64_t i = begin; i < end; ++i) {
    values[i - begin] =
        deviation == 0.0f ? mean : mean + deviation * Normal(seed, subsequence, parameter.GlobalIndex(i));
  }
}

}  // namespace dynamiccl::zero
