// SPDX-License-Identifier: Apache-2.0
// Users can pin a choice by NCCL's own variables: NCCL_ALGO, NCCL_PROTO, and the limits on channels. The
// grammar is that of NCCL 2.24 and later: "[function:]list;function:list". Lists are separated by commas, a
// leading ^ excludes, and only the first entry may lack a function. Example: "ring;allreduce:tree,ring".
#pragma once

#include <array>
#include <string>

#include "src/base/status.h"
#include "src/collective/collective.h"
#include "src/collective/legal_configs.h"

namespace dynamiccl::hostccl {

// Values of NCCL_ALGO and NCCL_PROTO; empty means not set.
struct PinnedNames {
  std::string algorithms;
  std::string protocols;
};
// Reads the variables now, and logs those that are set.
PinnedNames PinnedFromEnvironment();

// The allowed pairs, by collective.
using PinnedMasks = std::array<ConfigMask, kTunableCollectives>;

// Returns the pairs that the two variables allow for each collective. An unknown token gives kInvalidArgument
// with NCCL's wording.
Result<PinnedMasks> MasksOf(const PinnedNames& names);

// Limits on the channels of a communicator; 0 means no limit.
struct ChannelLimits {
  int min = 0;
  int max = 0;
};
// Returns the limits of the communicator's configuration, replaced by NCCL_MIN_CTAS and NCCL_MAX_CTAS and
// tightened by NCCL_MIN_NCHANNELS and NCCL_MAX_NCHANNELS. As in NCCL, a value that is no positive number is
// ignored with a WARN.
ChannelLimits LimitsFromEnvironment(ChannelLimits config);

}  // namespace dynamiccl::hostccl
