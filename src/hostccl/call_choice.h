// SPDX-License-Identifier: Apache-2.0
// What a program asks of one collective call by its ncclCollConfig_t.
#pragma once

#include "src/base/status.h"
#include "src/collective/legal_configs.h"
#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl::hostccl {

struct CallChoice {
  ConfigMask selection;  // pairs that may be chosen; none: all
  bool forced = true;    // a selection that cannot be had is an error, not ignored
  int min_channels = 0;  // 0: not set
  int max_channels = 0;
  // Not merged with its neighbours: minCTAs, maxCTAs, nvlsCTAs, algSelection, CTAPolicy or the event is set.
  bool isolated = false;
  uint64_t user_tag = 0;  // for profiler plugins
  // Recorded in stream order before the call runs; null: none.
  cudaEvent_t launch_event = nullptr;
};

// Reads no more than config->size bytes; null gives the default. kInvalidArgument for what NCCL refuses:
// magic, forceAlgSelection, CTAPolicy, or a forced algSelection that says nothing for `collective`. vendor
// options and cgaClusterSize are accepted: nothing here depends on them.
Result<CallChoice> ReadCallConfig(const ncclCollConfig_t* config, Collective collective);

// Of `allowed`, what the choice leaves, unless the user's environment pins the collective: that wins.
ConfigMask Selected(const CallChoice& choice, const ConfigMask& allowed, bool pinned);

// Within the call's limits, which are within the communicator's.
int ChannelsWithin(const CallChoice& choice, int channels, int communicator_channels);

}  // namespace dynamiccl::hostccl
