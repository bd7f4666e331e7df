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

// The checked configuration of one call. A default-constructed value requests nothing.
struct CallChoice {
  ConfigMask selection;  // pairs that may be chosen; an empty mask means all
  bool forced = true;    // true: a selection that cannot be satisfied is an error
  // Limits on the number of channels of the call, from minCTAs and maxCTAs; 0 for no limit.
  int min_channels = 0;
  int max_channels = 0;
  // True if the call is planned alone and not merged with neighbouring calls. As in NCCL, that is so if the
  // program sets minCTAs, maxCTAs, nvlsCTAs, algSelection, CTAPolicy or the event.
  bool isolated = false;
  // The program's userProfilerTag, which profiler plugins receive.
  uint64_t user_tag = 0;
  // An event that the stream records before the call runs; null for none.
  cudaEvent_t launch_event = nullptr;
};

// Reads at most config->size bytes; a null `config` gives the default. Returns kInvalidArgument where NCCL
// refuses the structure: for a wrong magic number, a wrong forceAlgSelection or CTAPolicy, or a forced
// algSelection that names nothing for `collective`. Vendor options and cgaClusterSize are accepted and
// ignored.
Result<CallChoice> ReadCallConfig(const ncclCollConfig_t* config, Collective collective);

// Returns the pairs of algorithm and protocol in `allowed` that the call's algSelection permits. If the
// user's environment pins the collective, all of `allowed` is returned.
ConfigMask Selected(const CallChoice& choice, const ConfigMask& allowed, bool pinned);

// Returns `channels` within the call's limits, and from 1 to the communicator's number of channels.
int ChannelsWithin(const CallChoice& choice, int channels, int communicator_channels);

// ncclCollConfig_t's algSelection: which algorithms a call may use, in NCCL's grammar (2.31 and later).
//   selection = term {"," term}      any of the terms
//   term      = factor {"+" factor}  all of its factors
//   factor    = ["^"] tag            "^": all but these
// A tag means every name that begins with it, in any case: "RING_LL" means RING_LL and RING_LL128. White
// space is ignored. Example: "RING+^RING_SIMPLE,TREE_LL".

// A parsed algSelection, applied to one collective.
struct AlgorithmSelection {
  ConfigMask configs;  // pairs of the cost table
  // True if the selection names a symmetric kernel that NCCL has for the collective. hostccl has no symmetric
  // kernels.
  bool symmetric = false;
};

// Returns the pairs of algorithm and protocol that the text names and NCCL has for `collective`; an empty
// text names none. Returns nullopt if the text does not parse or a term contradicts itself.
std::optional<AlgorithmSelection> ParseAlgorithmSelection(std::string_view text, Collective collective);

}  // namespace dynamiccl::hostccl
