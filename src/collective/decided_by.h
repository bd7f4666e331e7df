// SPDX-License-Identifier: Apache-2.0
// Says who chose the configuration of a call. Traces, the decision log and reports contain this value.
#pragma once

#include <cstdint>
#include <string_view>

namespace dynamiccl {

// The numbers are part of the trace format (docs/formats/trace.md), so new values are only appended.
enum class DecidedBy : uint8_t {
  kNccl = 0,
  kPolicy = 1,
  kRule = 2,
  kUserPin = 3,
  kChainedTuner = 4,
  kGuard = 5,   // a table version differs from its policy here because of measured times
  kTrial = 6,   // a table version tries a configuration to see whether it is faster
  kSample = 7,  // a table version leaves the call to NCCL, to compare NCCL's choice with its own
};
inline constexpr int kDeciders = 8;

// Returns the name that reports and logs show; "unknown" for a number outside the enum.
constexpr std::string_view Name(DecidedBy decided_by) {
  constexpr std::string_view kNames[] = {"nccl",    "policy", "rule",  "pin",
                                         "chained", "guard",  "trial", "sample"};
  const auto index = static_cast<size_t>(decided_by);
  return index < kDeciders ? kNames[index] : "unknown";
}

}  // namespace dynamiccl
