// SPDX-License-Identifier: Apache-2.0
// Reduction operators, with NCCL's numbers (ncclRedOp_t).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace dynamiccl {

// kPreMulSum stands for every operator that the program made itself, by ncclRedOpCreatePreMulSum.
enum class ReduceOp : uint8_t { kSum = 0, kProd = 1, kMax = 2, kMin = 3, kAvg = 4, kPreMulSum = 5 };
// Number of NCCL's own operators.
inline constexpr int kReduceOps = 5;

// Converts NCCL's number. NCCL derives the number of an operator that the program made from an address, so
// ranks have different numbers for the same operator. What is derived from a call must not depend on this
// number.
constexpr ReduceOp ReduceOpOf(int nccls) {
  return nccls >= 0 && nccls < kReduceOps ? static_cast<ReduceOp>(nccls) : ReduceOp::kPreMulSum;
}

// Returns the spelling of nccl-tests: "sum", "prod", "max", "min", "avg", "mulsum".
std::string_view Name(ReduceOp op);
// Parses the name of one of NCCL's own operators, in any case. Returns nullopt for another name.
std::optional<ReduceOp> ParseReduceOp(std::string_view name);

}  // namespace dynamiccl
