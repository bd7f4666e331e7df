// SPDX-License-Identifier: Apache-2.0
// Table of spellings, indexed by NCCL's numbers.
#include "src/collective/reduce_op.h"

#include <strings.h>

#include <string>

namespace dynamiccl {
namespace {

constexpr const char* kNames[kReduceOps + 1] = {"sum", "prod", "max", "min", "avg", "mulsum"};

}  // namespace

std::string_view Name(ReduceOp op) {
  const auto index = static_cast<size_t>(op);
  return index <= kReduceOps ? kNames[index] : "unknown";
}

std::optional<ReduceOp> ParseReduceOp(std::string_view name) {
  for (int i = 0; i < kReduceOps; ++i) {
    if (::strcasecmp(std::string(name).c_str(), kNames[i]) == 0) return static_cast<ReduceOp>(i);
  }
  return std::nullopt;
}

}  // namespace dynamiccl
