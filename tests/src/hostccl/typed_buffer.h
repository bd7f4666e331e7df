// SPDX-License-Identifier: Apache-2.0
// Small numbers stored in NCCL's types at any alignment. The collective tests send and compare them.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "src/collective/data_type.h"
#include "src/hostccl/reduce_kernels/half_float.h"

namespace dynamiccl::testing {

template <typename T>
void Store(std::byte* at, double value) {
  const T typed = static_cast<T>(value);
  std::memcpy(at, &typed, sizeof(T));
}
template <typename T>
double Load(const std::byte* at) {
  T typed;
  std::memcpy(&typed, at, sizeof(T));
  return static_cast<double>(typed);
}

// Returns the value of fp8 bits by the OCP formats.
inline double Float8Value(DataType type, int bits) {
  const int mantissa_bits = type == DataType::kFloat8e4m3 ? 3 : 2;
  const int bias = type == DataType::kFloat8e4m3 ? 7 : 15;
  const int exponent = (bits & 0x7f) >> mantissa_bits;
  const double fraction = static_cast<double>(bits & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits);
  const double value =
      exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
  const bool is_nan = type == DataType::kFloat8e4m3 ? (bits & 0x7f) == 0x7f : (bits & 0x7f) > 0x7c;
  if (is_nan) return std::nan("");
  const bool is_infinite = type == DataType::kFloat8e5m2 && (bits & 0x7f) == 0x7c;
  return ((bits & 0x80) != 0 ? -1 : 1) * (is_infinite ? INFINITY : value);
}

inline const std::array<double, 256>& Float8Values(DataType type) {
  const auto all = [](DataType of) {
    std::array<double, 256> values;
    for (int bits = 0; bits < 256; ++bits) values[static_cast<size_t>(bits)] = Float8Value(of, bits);
    return values;
  };
  static const std::array<double, 256> e4m3 = all(DataType::kFloat8e4m3);
  static const std::array<double, 256> e5m2 = all(DataType::kFloat8e5m2);
  return type == DataType::kFloat8e4m3 ? e4m3 : e5m2;
}

// Returns the bits of `value`, or of the next larger magnitude if the format lacks `value`. Beyond the
// largest number it returns a NaN. The search works because positive values increase with their bits.
inline uint8_t Float8Bits(DataType type, double value) {
  const auto& values = Float8Values(type);
  const auto* const end = values.begin() + (type == DataType::kFloat8e4m3 ? 0x7f : 0x7d);
  const auto* const found = std::lower_bound(values.begin(), end, std::fabs(value));
  if (found == end) return 0x7f;
  return static_cast<uint8_t>((found - values.begin()) | (std::signbit(value) ? 0x80 : 0));
}

// Exact for numbers with at most 8 significant bits, because bf16 is the upper half of fp32.
inline void StoreElement(DataType type, std::byte* at, double value) {
  switch (type) {
    case DataType::kInt8:
      return Store<int8_t>(at, value);
    case DataType::kUint8:
      return Store<uint8_t>(at, value);
    case DataType::kInt32:
      return Store<int32_t>(at, value);
    case DataType::kUint32:
      return Store<uint32_t>(at, value);
    case DataType::kInt64:
      return Store<int64_t>(at, value);
    case DataType::kUint64:
      return Store<uint64_t>(at, value);
    case DataType::kFloat16:
      return Store<uint16_t>(at, hostccl::NarrowHalf(static_cast<float>(value)));
    case DataType::kFloat32:
      return Store<float>(at, value);
    case DataType::kFloat64:
      return Store<double>(at, value);
    case DataType::kFloat8e4m3:
    case DataType::kFloat8e5m2:
      *at = static_cast<std::byte>(Float8Bits(type, value));
      return;
    default:
      return Store<uint16_t>(at, std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16);
  }
}

inline double LoadElement(DataType type, const std::byte* at) {
  switch (type) {
    case DataType::kInt8:
      return Load<int8_t>(at);
    case DataType::kUint8:
      return Load<uint8_t>(at);
    case DataType::kInt32:
      return Load<int32_t>(at);
    case DataType::kUint32:
      return Load<uint32_t>(at);
    case DataType::kInt64:
      return Load<int64_t>(at);
    case DataType::kUint64:
      return Load<uint64_t>(at);
    case DataType::kFloat16:
      return hostccl::WidenHalf(Load<uint16_t>(at));
    case DataType::kFloat32:
      return Load<float>(at);
    case DataType::kFloat64:
      return Load<double>(at);
    case DataType::kFloat8e4m3:
    case DataType::kFloat8e5m2:
      return Float8Values(type)[static_cast<size_t>(*at)];
    default:
      return std::bit_cast<float>(static_cast<uint32_t>(Load<uint16_t>(at)) << 16);
  }
}

inline std::vector<double> LoadElements(DataType type, const std::byte* at, size_t count) {
  std::vector<double> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = LoadElement(type, at + i * ElementBytes(type));
  return values;
}

}  // namespace dynamiccl::testing
