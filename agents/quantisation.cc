// SPDX-License-Identifier: Apache-2.0
// One template implements Quantise for 16-bit and for 32-bit integers.
#include "agents/quantisation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace dynamiccl::agents {
namespace {

template <typename T>
void QuantiseTo(const at::Tensor& values, int fraction_bits, std::span<T> target) {
  const at::Tensor flat = values.detach().to(at::kDouble).contiguous().view({-1});
  if (static_cast<size_t>(flat.numel()) != target.size())
    throw std::logic_error("quantised into another shape");
  const double* source = flat.const_data_ptr<double>();
  const double limit = std::numeric_limits<T>::max();
  for (size_t i = 0; i < target.size(); ++i) {
    const double scaled = std::nearbyint(std::ldexp(source[i], fraction_bits));
    target[i] = static_cast<T>(std::clamp(scaled, -limit, limit));
  }
}

}  // namespace

int FractionBits(const at::Tensor& weights, int most) {
  const double largest = weights.detach().abs().max().item<double>();
  int bits = most;
  while (bits > 1 && std::ldexp(largest, bits) > std::numeric_limits<int16_t>::max()) --bits;
  return bits;
}

void Quantise(const at::Tensor& values, int fraction_bits, std::span<int16_t> target) {
  QuantiseTo(values, fraction_bits, target);
}

void Quantise(const at::Tensor& values, int fraction_bits, std::span<int32_t> target) {
  QuantiseTo(values, fraction_bits, target);
}

}  // namespace dynamiccl::agents
