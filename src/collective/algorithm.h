// SPDX-License-Identifier: Apache-2.0
// NCCL's algorithms, with its numbers (NCCL_ALGO_*, src/include/plugin/nccl_tuner.h) and its spellings.
// Whoever chooses kUndefined leaves the choice to NCCL.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace dynamiccl {

enum class Algorithm : int8_t {
  kUndefined = -1,
  kTree = 0,
  kRing = 1,
  kCollnetDirect = 2,
  kCollnetChain = 3,
  kNvls = 4,
  kNvlsTree = 5,
  kPat = 6,
};
// Number of algorithms. NCCL's cost table has one row for each.
inline constexpr int kAlgorithms = 7;

// Returns the name as NCCL_ALGO spells it: "Tree", "Ring", "CollnetDirect", "CollnetChain", "NVLS",
// "NVLSTree", "PAT".
std::string_view Name(Algorithm algorithm);
// Parses a name in any case and ignores underscores, since NCCL's log writes "NVLS_TREE". Returns nullopt for
// an unknown name.
std::optional<Algorithm> ParseAlgorithm(std::string_view name);
// Returns the name as NCCL's TUNING line spells it: "TREE", "RING", "NVLS_TREE".
std::string_view LogName(Algorithm algorithm);

}  // namespace dynamiccl
