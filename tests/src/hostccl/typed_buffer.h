// SPDX-License-Identifier: Apache-2.0
// Small numbers stored in NCCL's types at any alignment: what the collective tests feed and compare.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "src/collective/data_type.h"

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

// Exact for numbers with at most 8 significant bits: bf16 is the upper half of fp32.
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
      return Store<_Float16>(at, value);
    case DataType::kFloat32:
      return Store<float>(at, value);
    case DataType::kFloat64:
      return Store<double>(at, value);
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
      return Load<_Float16>(at);
    case DataType::kFloat32:
      return Load<float>(at);
    case DataType::kFloat64:
      return Load<double>(at);
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
