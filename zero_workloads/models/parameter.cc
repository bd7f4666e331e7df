// SPDX-License-Identifier: Apache-2.0
// First values from Philox4x32-10 (Salmon et al., SC 2011): key = seed, subsequence = hash of the name,
// counter = index.
#include "zero_workloads/models/parameter.h"

#include <ATen/core/PhiloxRNGEngine.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cmath>
#include <numbers>

namespace dynamiccl::zero {
namespace {

// Box-Muller on two of the four 32-bit numbers of one counter value; (0, 1] keeps the logarithm finite.
float Normal(uint64_t seed, uint64_t subsequence, int64_t index) {
  at::Philox4_32 engine(seed, subsequence, static_cast<uint64_t>(index));
  const double u = (engine() + 1.0) * 0x1p-32;
  const double v = engine() * 0x1p-32;
  return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v));
}

}  // namespace

int64_t ParameterSlot::Elements() const {
  int64_t elements = 1;
  for (int64_t extent : shape) elements *= extent;
  return elements;
}

void FillInitialValues(const ParameterSlot& parameter, uint64_t seed, int64_t begin, int64_t end,
                       float* values) {
  const auto [mean, deviation] = parameter.initialisation;
  const uint64_t subsequence = XXH3_64bits(parameter.name.data(), parameter.name.size());
  for (int64_t i = begin; i < end; ++i) {
    values[i - begin] = deviation == 0.0f ? mean : mean + deviation * Normal(seed, subsequence, i);
  }
}

}  // namespace dynamiccl::zero
