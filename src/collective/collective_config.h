// SPDX-License-Identifier: Apache-2.0
// What is chosen for a collective: algorithm, protocol and number of channels.
#pragma once

#include <cstdint>

#include "src/collective/algorithm.h"
#include "src/collective/protocol.h"

namespace dynamiccl {

// channels 0 means "NCCL decides the channels". kUndefined algorithm or protocol means "leave NCCL alone".
struct CollectiveConfig {
  Algorithm algorithm = Algorithm::kUndefined;
  Protocol protocol = Protocol::kUndefined;
  uint8_t channels = 0;

  bool leaves_nccl_alone() const {
    return algorithm == Algorithm::kUndefined || protocol == Protocol::kUndefined;
  }
  friend bool operator==(const CollectiveConfig&, const CollectiveConfig&) = default;
};

// NCCL's MAXCHANNELS since 2.25: no communicator has more. Tuners answer in a signed byte.
inline constexpr int kMaxNcclChannels = 64;

inline constexpr CollectiveConfig kLeaveNcclAlone{};

}  // namespace dynamiccl
