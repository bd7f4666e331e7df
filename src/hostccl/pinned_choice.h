// SPDX-License-Identifier: Apache-2.0
// Users can fix ("pin") a choice by NCCL's own variables: NCCL_ALGO, NCCL_PROTO, and the limits on channels.
// The grammar is that of NCCL 2.24 and later: "[function:]list;function:list". Lists are separated by commas,
// a leading ^ excludes, and only the first entry may lack a function. Example: "ring;allreduce:tree,ring".
#pragma once

#include <array>
#include <string>

#include "src/base/status.h"
#include "src/collective/collective.h"
#include "src/collective/legal_configs.h"

namespace dynamiccl::hostccl {

// The values of NCCL_ALGO and NCCL_PROTO. An empty text means that the variable is not set.
struct PinnedNames {
  std::string algorithms;
  std::string protocols;
};
// Reads the variables now, and logs those that are set.
PinnedNames PinnedFromEnvironment();

// For each collective the pairs of algorithm and protocol that the user allows.
using PinnedMasks = std::array<ConfigMask, kTunableCollectives>;

// Returns the pairs of algorithm and protocol that the two variables allow for each collective. For an
// unknown name it returns kInvalidArgument with NCCL's wording.
Result<PinnedMasks> MasksOf(const PinnedNames& names);

// Limits on the number of channels of a communicator. A limit of 0 means that there is none.
struct ChannelLimits {
  int min = 0;
  int max = 0;
};
// Returns the limits in force. NCCL_MIN_CTAS and NCCL_MAX_CTAS replace those of the communicator's
// configuration. NCCL_MIN_NCHANNELS and NCCL_MAX_NCHANNELS can only make them stricter. As in NCCL, a value
// that is no positive number is ignored with a WARN.
ChannelLimits LimitsFromEnvironment(ChannelLimits config);

}  // namespace dynamiccl::hostccl
