// SPDX-License-Identifier: Apache-2.0
// Reduction operators, with NCCL's numbers (ncclRedOp_t). Operators that a program makes itself with
// ncclRedOpCreatePreMulSum have larger numbers and are not in this enum.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace dynamiccl {

enum class ReduceOp : uint8_t { kSum = 0, kProd = 1, kMax = 2, kMin = 3, kAvg = 4 };
inline constexpr int kReduceOps = 5;

// Returns the spelling of nccl-tests: "sum", "prod", "max", "min", "avg".
std::string_view Name(ReduceOp op);
// Parses a name in any case. Returns nullopt for an unknown name.
std::optional<ReduceOp> ParseReduceOp(std::string_view name);

}  // namespace dynamiccl
