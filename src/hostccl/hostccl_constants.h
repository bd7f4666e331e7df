// SPDX-License-Identifier: Apache-2.0
// The constants of hostccl's cost model: calibrated software costs, and the links of the topology.
#pragma once

#include "src/cost_model/cost_model.h"

namespace dynamiccl::hostccl {

// Returns the pairs of algorithm and protocol that hostccl implements for a collective. Ring (all five
// collectives) and Tree (AllReduce) exist with Simple, LL and LL128. PAT, NVLS and NVLSTree exist with
// Simple; in place of NVLS and NVLSTree hostccl runs its one-pass algorithms.
ConfigMask SupportedConfigs(Collective collective);

// Returns the cost model's input for a communicator on `fabric`. This is a pure function, so the result is
// equal on all ranks.
CostModelInput HostcclModel(const Fabric& fabric);

}  // namespace dynamiccl::hostccl
