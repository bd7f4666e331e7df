// SPDX-License-Identifier: Apache-2.0
// The table of element types. See data_type.h.
#include "src/collective/data_type.h"

#include "src/collective/spelling.h"

namespace dynamiccl {
namespace {

struct Row {
  DataType type;
  std::string_view name;       // nccl-tests
  std::string_view nccl_name;  // ncclDataType_t
};

constexpr Row kRows[kDataTypes] = {
    {DataType::kInt8, "int8", "ncclInt8"},
    {DataType::kUint8, "uint8", "ncclUint8"},
    {DataType::kInt32, "int32", "ncclInt32"},
    {DataType::kUint32, "uint32", "ncclUint32"},
    {DataType::kInt64, "int64", "ncclInt64"},
    {DataType::kUint64, "uint64", "ncclUint64"},
    {DataType::kFloat16, "half", "ncclFloat16"},
    {DataType::kFloat32, "float", "ncclFloat32"},
    {DataType::kFloat64, "double", "ncclFloat64"},
    {DataType::kBfloat16, "bfloat16", "ncclBfloat16"},
    {DataType::kFloat8e4m3, "f8e4m3", "ncclFloat8e4m3"},
    {DataType::kFloat8e5m2, "f8e5m2", "ncclFloat8e5m2"},
};

}  // namespace

std::string_view Name(DataType type) {
  const auto index = static_cast<size_t>(type);
  return index < kDataTypes ? kRows[index].name : "unknown";
}

std::string_view NcclName(DataType type) {
  const auto index = static_cast<size_t>(type);
  return index < kDataTypes ? kRows[index].nccl_name : "Unknown";
}

std::optional<DataType> ParseDataType(std::string_view name) {
  for (const Row& row : kRows) {
    const std::string_view bare = row.nccl_name.substr(std::string_view("nccl").size());
    if (EqualIgnoringCase(name, row.nccl_name) || EqualIgnoringCase(name, bare) ||
        EqualIgnoringCase(name, row.name))
      return row.type;
  }
  return std::nullopt;
}

}  // namespace dynamiccl
