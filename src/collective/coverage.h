// SPDX-License-Identifier: Apache-2.0
// Says whether a tuner can change how a call is carried out, and if not, why. Reports count calls by these
// values to say which share of a job's communication a policy can reach.
#pragma once

#include <cstdint>
#include <string_view>

namespace dynamiccl {

// The numbers are part of the trace format (docs/formats/trace.md), so new values are only appended.
enum class Coverage : uint8_t {
  kUnknown = 0,       // not observed: no tuner of ours, or NCCL asks on a thread of its own
  kTunable = 1,       // NCCL asked the tuner and offered a choice; without a tuner: as far as the call shows
  kPinned = 2,        // the user's variables, or the call itself, name the configuration
  kSingleConfig = 3,  // NCCL offers one configuration, or the communicator has one rank
  kPointToPoint = 4,  // sends, receives and the collectives that NCCL builds from them
  kCaptured = 5,      // part of a CUDA graph: decided once, at its capture
  kNotAsked = 6,      // a call of no bytes
  // NCCL does not ask a tuner about the following two kinds of calls.
  kSymmetricKernel = 7,  // its buffers lie in windows that are registered on all ranks
  kCopyEngine = 8,       // such buffers under the CTA policy ZERO: copy engines move the data
};
inline constexpr int kCoverages = 9;

// Returns the name that reports and exports show; "unknown" for a number outside the enum.
constexpr std::string_view Name(Coverage coverage) {
  constexpr std::string_view kNames[] = {"unknown",       "tunable",          "pinned",
                                         "single_config", "point_to_point",   "captured",
                                         "not_asked",     "symmetric_kernel", "copy_engine"};
  const auto index = static_cast<size_t>(coverage);
  return index < kCoverages ? kNames[index] : "unknown";
}

}  // namespace dynamiccl
