// SPDX-License-Identifier: Apache-2.0
// The configuration of a collective: an algorithm, a protocol and a number of channels.
#pragma once

#include <cstdint>

#include "src/collective/algorithm.h"
#include "src/collective/protocol.h"

namespace dynamiccl {

// This is a plain value. `channels` 0 lets NCCL choose the number of channels; an undefined algorithm or
// protocol leaves the whole call to NCCL.
struct CollectiveConfig {
  Algorithm algorithm = Algorithm::kUndefined;
  Protocol protocol = Protocol::kUndefined;
  uint8_t channels = 0;

  bool leaves_nccl_alone() const {
    return algorithm == Algorithm::kUndefined || protocol == Protocol::kUndefined;
  }
  friend bool operator==(const CollectiveConfig&, const CollectiveConfig&) = default;
};

// No communicator has more channels: NCCL's MAXCHANNELS has been 64 since release 2.25.
inline constexpr int kMaxNcclChannels = 64;

// The configuration by which a decision leaves the whole call to NCCL.
inline constexpr CollectiveConfig kLeaveNcclAlone{};

}  // namespace dynamiccl
