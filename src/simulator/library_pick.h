// SPDX-License-Identifier: Apache-2.0
// Finds what NCCL would pick on a system by its own cost model (src/cost_model). The model gets the
// bandwidths of the system's links, and NCCL's own constants for the rest. CollectiveTimes says what the pick
// really costs, from measured times.
#pragma once

#include "src/collective/legal_configs.h"
#include "src/cost_model/cost_model.h"
#include "src/simulator/system.h"

namespace dynamiccl {

// Returns the pairs of algorithm and protocol for which the system has costs, whether or not a collective can
// use them.
ConfigMask KnownPaths(const System& system);

// Returns NCCL's view: the links have the bandwidths of Ring/Simple, or of the fastest known path when that
// is missing; latencies and caps are NCCL 2.30.7's for Hopper.
CostModelInput LibraryView(const System& system, int n_ranks, int n_nodes);

// Returns the cheapest pair in NCCL's view among the paths that the system knows, with NCCL's channel count
// for the size. Returns kLeaveNcclAlone if the view prices none of them, and for a lone rank.
CollectiveConfig LibraryPick(const System& system, Collective collective, uint64_t bytes, int n_ranks,
                             int n_nodes);

}  // namespace dynamiccl
