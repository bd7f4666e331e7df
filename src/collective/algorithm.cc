// SPDX-License-Identifier: Apache-2.0
// Tables of spellings, indexed by NCCL's numbers.
#include "src/collective/algorithm.h"

#include <cctype>
#include <string>

namespace dynamiccl {
namespace {

constexpr std::string_view kNames[kAlgorithms] = {"Tree",     "Ring", "CollnetDirect", "CollnetChain", "NVLS",
                                                  "NVLSTree", "PAT"};
constexpr std::string_view kLogNames[kAlgorithms] = {
    "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};

std::string Folded(std::string_view name) {
  std::string folded;
  for (const char c : name) {
    if (c != '_') folded += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return folded;
}

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
  const std::string wanted = Folded(name);
  for (size_t i = 0; i < kAlgorithms; ++i) {
    if (Folded(kNames[i]) == wanted) return static_cast<Algorithm>(i);
  }
  return std::nullopt;
}

}  // namespace dynamiccl
