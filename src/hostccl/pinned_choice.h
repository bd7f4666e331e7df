// SPDX-License-Identifier: Apache-2.0
// What the user pinned by NCCL's own variables: NCCL_ALGO, NCCL_PROTO, and the CTA and channel limits.
// Grammar of NCCL 2.24 and later: "[function:]list;function:list", lists separated by commas, a leading ^
// excludes, only the first entry may lack a function.
#pragma once

#include <array>
#include <string>

#include "src/base/status.h"
#include "src/collective/collective.h"
#include "src/collective/legal_configs.h"

namespace dynamiccl::hostccl {

// Values of the two variables; empty: not set.
struct PinnedNames {
  std::string algorithms;
  std::string protocols;
};
PinnedNames PinnedFromEnvironment();

using PinnedMasks = std::array<ConfigMask, kTunableCollectives>;

// Pairs that the two variables leave for each collective. An unknown token is an error with NCCL's wording.
Result<PinnedMasks> MasksOf(const PinnedNames& names);

// Limits on channels in the given config, replaced or tightened by NCCL_MIN_CTAS, NCCL_MAX_CTAS,
// NCCL_MIN_NCHANNELS and NCCL_MAX_NCHANNELS; 0: no limit. A value that is no positive number is ignored with
// a WARN, as NCCL does.
struct ChannelLimits {
  int min = 0;
  int max = 0;
};
ChannelLimits LimitsFromEnvironment(ChannelLimits config);

}  // namespace dynamiccl::hostccl
