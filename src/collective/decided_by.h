// SPDX-License-Identifier: Apache-2.0
// Who made a decision.
#pragma once

#include <cstdint>
#include <string_view>

namespace dynamiccl {

// Numbers of the trace format (docs/formats/trace.md).
enum class DecidedBy : uint8_t { kNccl = 0, kPolicy = 1, kRule = 2, kUserPin = 3, kChainedTuner = 4 };
inline constexpr int kDeciders = 5;

constexpr std::string_view Name(DecidedBy decided_by) {
  constexpr std::string_view kNames[] = {"nccl", "policy", "rule", "pin", "chained"};
  const auto index = static_cast<size_t>(decided_by);
  return index < kDeciders ? kNames[index] : "unknown";
}

}  // namespace dynamiccl
