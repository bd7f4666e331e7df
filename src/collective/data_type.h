// SPDX-License-Identifier: Apache-2.0
// Element types, with NCCL's numbers (ncclDataType_t), sizes and spellings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace dynamiccl {

enum class DataType : uint8_t {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kUint32 = 3,
  kInt64 = 4,
  kUint64 = 5,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9,
  kFloat8e4m3 = 10,
  kFloat8e5m2 = 11,
};
inline constexpr int kDataTypes = 12;

// Returns the bytes of one element; 0 for a number outside the enum, such as a type of a later release.
constexpr size_t ElementBytes(DataType type) {
  constexpr uint8_t kBytes[kDataTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  const auto index = static_cast<size_t>(type);
  return index < kDataTypes ? kBytes[index] : 0;
}
// Returns the spelling of nccl-tests: "float", "half", "bfloat16", "int8" ...
std::string_view Name(DataType type);
// Returns NCCL's spelling: "ncclFloat32".
std::string_view NcclName(DataType type);
// Parses a name in NCCL's spelling, with or without its prefix ("float32"), or in that of nccl-tests, in any
// case. Returns nullopt for an unknown name.
std::optional<DataType> ParseDataType(std::string_view name);

}  // namespace dynamiccl
