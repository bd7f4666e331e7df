// SPDX-License-Identifier: Apache-2.0
#include "src/collective/data_type.h"

#include <strings.h>

#include <string>

namespace dynamiccl {
namespace {

struct Row {
  DataType type;
  size_t bytes;
  const char* name;       // nccl-tests
  const char* nccl_name;  // ncclDataType_t without the prefix
};

constexpr Row kRows[kDataTypes] = {
    {DataType::kInt8, 1, "int8", "Int8"},         {DataType::kUint8, 1, "uint8", "Uint8"},
    {DataType::kInt32, 4, "int32", "Int32"},      {DataType::kUint32, 4, "uint32", "Uint32"},
    {DataType::kInt64, 8, "int64", "Int64"},      {DataType::kUint64, 8, "uint64", "Uint64"},
    {DataType::kFloat16, 2, "half", "Float16"},   {DataType::kFloat32, 4, "float", "Float32"},
    {DataType::kFloat64, 8, "double", "Float64"}, {DataType::kBfloat16, 2, "bfloat16", "Bfloat16"},
    {DataType::kFloat8e4m3, 1, "f8e4m3", "Float8e4m3"}, {DataType::kFloat8e5m2, 1, "f8e5m2", "Float8e5m2"},
};

}  // namespace

size_t ElementBytes(DataType type) {
  const auto index = static_cast<size_t>(type);
  return index < kDataTypes ? kRows[index].bytes : 0;
}

std::string_view Name(DataType type) {
  const auto index = static_cast<size_t>(type);
  return index < kDataTypes ? kRows[index].name : "unknown";
}

std::optional<DataType> ParseDataType(std::string_view name) {
  const bool prefixed = name.size() > 4 && ::strncasecmp(name.data(), "nccl", 4) == 0;
  const std::string bare(prefixed ? name.substr(4) : name);
  for (const Row& row : kRows) {
    if (::strcasecmp(bare.c_str(), row.name) == 0 || ::strcasecmp(bare.c_str(), row.nccl_name) == 0) return row.type;
  }
  return std::nullopt;
}

}  // namespace dynamiccl
