// SPDX-License-Identifier: Apache-2.0
// Computes what a release of NVIDIA's NCCL picks for one lone call without a tuner: algorithm, protocol,
// channels and threads. The tests use it to show that the costs of nccl_costs.h lead to NCCL's own choices.
//
// Sources and limits are those of nccl_costs.h.
#pragma once

#include <cstdint>

#include "src/collective/collective_config.h"
#include "src/cost_model/nccl_costs.h"

namespace dynamiccl {

// The configuration of a launch. `config.channels` is the number of channels that get a share of the call.
struct NcclOwnChoice {
  CollectiveConfig config;
  int threads = 0;  // The threads of a channel.

  friend bool operator==(const NcclOwnChoice&, const NcclOwnChoice&) = default;
};

// Returns NCCL's choice for a lone call of `bytes` (NCCL's total); default-constructed if no pair is
// possible.
NcclOwnChoice NcclChoice(const NcclCommunicatorFacts& facts, Collective collective, uint64_t bytes);

}  // namespace dynamiccl
