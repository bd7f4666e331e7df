// SPDX-License-Identifier: Apache-2.0
// Whether a tuner can change how a call is done, and what decides it where none can.
#pragma once

#include <cstdint>
#include <string_view>

namespace dynamiccl {

// Numbers of the trace format (docs/formats/trace.md).
enum class Coverage : uint8_t {
  kUnknown = 0,       // nobody looked: no tuner of ours, or NCCL asks on a thread of its own
  kTunable = 1,       // NCCL asked the tuner and offered a choice; without a tuner: as far as calls show
  kPinned = 2,        // the user's variables, or the call itself, name the configuration
  kSingleConfig = 3,  // NCCL offers one configuration, or the communicator has one rank
  kPointToPoint = 4,  // sends, receives and what is made of them
  kCaptured = 5,      // part of a CUDA graph: decided once, at its capture
  kNotAsked = 6,      // a call of no bytes
  // NCCL asks no tuner about what these carry.
  kSymmetricKernel = 7,  // buffers in windows that are registered on all ranks
  kCopyEngine = 8,       // these, under the CTA policy ZERO
};
inline constexpr int kCoverages = 9;

constexpr std::string_view Name(Coverage coverage) {
  constexpr std::string_view kNames[] = {"unknown",       "tunable",          "pinned",
                                         "single_config", "point_to_point",   "captured",
                                         "not_asked",     "symmetric_kernel", "copy_engine"};
  const auto index = static_cast<size_t>(coverage);
  return index < kCoverages ? kNames[index] : "unknown";
}

}  // namespace dynamiccl
