// SPDX-License-Identifier: Apache-2.0
// Tables of spellings, indexed by NCCL's numbers.
#include "src/collective/algorithm.h"

#include "src/collective/spelling.h"

namespace dynamiccl {
namespace {

constexpr std::string_view kNames[kAlgorithms] = {"Tree",     "Ring", "CollnetDirect", "CollnetChain", "NVLS",
                                                  "NVLSTree", "PAT"};
constexpr std::string_view kLogNames[kAlgorithms] = {
    "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};

}  // namespace

std::string_view Name(Algorithm algorithm) {
  const auto index = static_cast<size_t>(algorithm);
  return index < kAlgorithms ? kNames[index] : "Undefined";
}

std::string_view LogName(Algorithm algorithm) {
  const auto index = static_cast<size_t>(algorithm);
  return index < kAlgorithms ? kLogNames[index] : "UNDEFINED";
}

std::optional<Algorithm> ParseAlgorithm(std::string_view name) {
  for (size_t i = 0; i < kAlgorithms; ++i) {
    if (SameSpelling(kNames[i], name)) return static_cast<Algorithm>(i);
  }
  return std::nullopt;
}

}  // namespace dynamiccl
