// SPDX-License-Identifier: Apache-2.0
// Who made a decision.
#pragma once

#include <cstdint>
#include <string_view>

namespace dynamiccl {

// Numbers of the trace format (docs/formats/trace.md).
enum class DecidedBy : uint8_t {
  kNccl = 0,
  kPolicy = 1,
  kRule = 2,
  kUserPin = 3,
  kChainedTuner = 4,
  kGuard = 5,   // a table version chose something else than its policy
  kTrial = 6,   // part of a version: to see whether it is better
  kSample = 7,  // likewise, left to NCCL to compare with
};
inline constexpr int kDeciders = 8;

constexpr std::string_view Name(DecidedBy decided_by) {
  constexpr std::string_view kNames[] = {"nccl",    "policy", "rule",  "pin",
                                         "chained", "guard",  "trial", "sample"};
  const auto index = static_cast<size_t>(decided_by);
  return index < kDeciders ? kNames[index] : "unknown";
}

}  // namespace dynamiccl
