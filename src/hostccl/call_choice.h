// SPDX-License-Identifier: Apache-2.0
// The configuration that a program requests for one collective call by its ncclCollConfig_t (NCCL 2.31 and
// later).
#pragma once

#include <optional>
#include <string_view>

#include "src/base/status.h"
#include "src/collective/collective.h"
#include "src/collective/legal_configs.h"
#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl::hostccl {

// The checked wishes for one call. A default-constructed value asks for nothing.
struct CallChoice {
  ConfigMask selection;  // pairs that may be chosen; an empty mask means all
  bool forced = true;    // true: a selection that cannot be satisfied is an error
  // Limits of the call, from minCTAs and maxCTAs; 0 for none.
  int min_channels = 0;
  int max_channels = 0;
  // True if the call is planned alone instead of being merged with neighbouring calls. In NCCL minCTAs,
  // maxCTAs, nvlsCTAs, algSelection, CTAPolicy and the event have this effect.
  bool isolated = false;
  // userProfilerTag, which profiler plugins see.
  uint64_t user_tag = 0;
  // An event to record in stream order before the call runs; null for none.
  cudaEvent_t launch_event = nullptr;
};

// Reads at most config->size bytes; null gives the default. Returns kInvalidArgument for what NCCL refuses: a
// wrong magic, forceAlgSelection or CTAPolicy, or a forced algSelection that names nothing for `collective`.
// Vendor options and cgaClusterSize are accepted and ignored.
Result<CallChoice> ReadCallConfig(const ncclCollConfig_t* config, Collective collective);

// Returns the pairs of `allowed` that the choice permits. If the user's environment pins the collective, the
// choice is ignored.
ConfigMask Selected(const CallChoice& choice, const ConfigMask& allowed, bool pinned);

// Applies the call's limits to `channels`; the result is from 1 to the communicator's channels.
int ChannelsWithin(const CallChoice& choice, int channels, int communicator_channels);

// ncclCollConfig_t's algSelection: which algorithms a call may use, in NCCL's grammar (2.31 and later).
//   selection = term {"," term}      any of the terms
//   term      = factor {"+" factor}  all of its factors
//   factor    = ["^"] tag            "^": all but these
// A tag means every name that begins with it, in any case: "RING_LL" means RING_LL and RING_LL128. White
// space is ignored. Example: "RING+^RING_SIMPLE,TREE_LL".

// A parsed selection, applied to one collective.
struct AlgorithmSelection {
  ConfigMask configs;  // pairs of the cost table
  // The selection names a symmetric kernel that NCCL has for the collective; hostccl has none.
  bool symmetric = false;
};

// Returns the named pairs that NCCL has for `collective`; an empty text selects nothing. Returns nothing if
// the text does not parse or a term contradicts itself.
std::optional<AlgorithmSelection> ParseAlgorithmSelection(std::string_view text, Collective collective);

}  // namespace dynamiccl::hostccl
