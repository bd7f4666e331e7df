// SPDX-License-Identifier: Apache-2.0
// Two tables of names. Collectives are looked up without the backend's prefix, without '_' and without what
// follows a blank.
#include "traces/import/pytorch_calls.h"

#include <string>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace dynamiccl {
namespace {

struct NamedCollective {
  std::string_view name;
  Collective collective;
};

// A barrier is an AllReduce of one element. A batch of sends and receives is SendRecv. In profiles the
// backend "nccl2" gives calls of one tensor the names of its own functions.
constexpr NamedCollective kCollectiveNames[] = {
    {"allreduce", Collective::kAllReduce},
    {"allreducecoalesced", Collective::kAllReduce},
    {"allreducesparse", Collective::kAllReduce},
    {"allreducebarrier", Collective::kAllReduce},
    {"barrier", Collective::kAllReduce},
    {"allgather", Collective::kAllGather},
    {"allgatherintotensor", Collective::kAllGather},
    {"allgatherbase", Collective::kAllGather},
    {"allgatherintotensorcoalesced", Collective::kAllGather},
    {"allGatherSingleImpl", Collective::kAllGather},
    {"reducescatter", Collective::kReduceScatter},
    {"reducescattertensor", Collective::kReduceScatter},
    {"reducescatterbase", Collective::kReduceScatter},
    {"reducescattertensorcoalesced", Collective::kReduceScatter},
    {"reduceScatterSingleImpl", Collective::kReduceScatter},
    {"broadcast", Collective::kBroadcast},
    {"reduce", Collective::kReduce},
    {"alltoall", Collective::kAllToAll},
    {"alltoallv", Collective::kAllToAll},
    {"alltoallbase", Collective::kAllToAll},
    {"alltoallsingle", Collective::kAllToAll},
    {"alltoallvsingle", Collective::kAllToAll},
    {"allToAllSingleImpl", Collective::kAllToAll},
    {"batchopissue", Collective::kSendRecv},
    {"gather", Collective::kGather},
    {"scatter", Collective::kScatter},
    {"send", Collective::kSend},
    {"recv", Collective::kRecv},
};

struct NamedDataType {
  std::string_view name;
  DataType type;
};
// Names of c10::ScalarType and older C++ spellings.
constexpr NamedDataType kDataTypeNames[] = {
    {"Float", DataType::kFloat32},
    {"float", DataType::kFloat32},
    {"Half", DataType::kFloat16},
    {"c10::Half", DataType::kFloat16},
    {"BFloat16", DataType::kBfloat16},
    {"c10::BFloat16", DataType::kBfloat16},
    {"Double", DataType::kFloat64},
    {"double", DataType::kFloat64},
    {"Int", DataType::kInt32},
    {"int", DataType::kInt32},
    {"Long", DataType::kInt64},
    {"long", DataType::kInt64},
    {"long int", DataType::kInt64},
    {"Byte", DataType::kUint8},
    {"unsigned char", DataType::kUint8},
    {"Char", DataType::kInt8},
    {"signed char", DataType::kInt8},
    {"Bool", DataType::kUint8},
    {"bool", DataType::kUint8},
    {"Float8_e4m3fn", DataType::kFloat8e4m3},
    {"Float8_e5m2", DataType::kFloat8e5m2},
    {"c10::Float8_e4m3fn", DataType::kFloat8e4m3},
};

constexpr std::string_view kNcclBackends[] = {"nccl:", "nccl2:"};
constexpr std::string_view kRecorderHook = "c10d:";

// Returns the length of the prefix that names a backend of NCCL; 0 without one.
size_t NcclPrefixOf(std::string_view name) {
  for (const std::string_view prefix : kNcclBackends) {
    if (name.starts_with(prefix)) return prefix.size();
  }
  return 0;
}

}  // namespace

bool IsOfNcclBackend(std::string_view name) {
  return NcclPrefixOf(name) > 0;
}

bool IsOfRecorderHook(std::string_view name) {
  return name.starts_with(kRecorderHook) && !name.substr(kRecorderHook.size()).starts_with(':');
}

std::optional<Collective> CollectiveOfPyTorch(std::string_view name) {
  name.remove_prefix(IsOfRecorderHook(name) ? kRecorderHook.size() : NcclPrefixOf(name));
  name = name.substr(0, name.find(' '));  // "send 0->1"
  std::string folded;
  for (const char c : name) {
    if (c != '_') folded += c;
  }
  for (const NamedCollective& row : kCollectiveNames) {
    if (row.name == folded) return row.collective;
  }
  return std::nullopt;
}

std::optional<DataType> DataTypeOfPyTorch(std::string_view name) {
  for (const NamedDataType& row : kDataTypeNames) {
    if (row.name == name) return row.type;
  }
  return std::nullopt;
}

uint64_t IdOfProcessGroup(std::string_view name, const std::vector<int64_t>& ranks) {
  return XXH3_64bits_withSeed(ranks.data(), ranks.size() * sizeof(ranks[0]),
                              XXH3_64bits(name.data(), name.size()));
}

}  // namespace dynamiccl
