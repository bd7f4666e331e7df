// SPDX-License-Identifier: Apache-2.0
// This file finds what NCCL would pick on a system by its own cost model (src/cost_model). The model is told
// the bandwidths of the links and believes its own constants for the rest. What the pick really costs is
// answered by CollectiveTimes, from what was measured.
#pragma once

#include "src/collective/legal_configs.h"
#include "src/cost_model/cost_model.h"
#include "src/simulator/system.h"

namespace dynamiccl {

// The pairs for which the system has costs, whether a collective has them or not.
ConfigMask KnownPaths(const System& system);

// Returns NCCL's view: the links have the bandwidths of Ring/Simple, or of the fastest known path when that
// is missing; latencies and caps are NCCL 2.30.7's for Hopper.
CostModelInput LibraryView(const System& system, int n_ranks, int n_nodes);

// The cheapest pair in that view among the paths that the system knows, with NCCL's channel count for the
// size. kLeaveNcclAlone where the view prices none of them, and for a lone rank.
CollectiveConfig LibraryPick(const System& system, Collective collective, uint64_t bytes, int n_ranks,
                             int n_nodes);

}  // namespace dynamiccl
