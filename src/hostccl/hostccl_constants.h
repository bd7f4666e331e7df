// SPDX-License-Identifier: Apache-2.0
// The constants of hostccl's cost model: calibrated software costs, and the links of the topology.
#pragma once

#include "src/cost_model/cost_model.h"

namespace dynamiccl::hostccl {

// Returns the pairs that hostccl implements for a collective: Ring for all five; Tree for AllReduce; both
// with Simple, LL and LL128; PAT with Simple; and the one-pass algorithms in the places of NVLS and NVLSTree,
// with Simple.
ConfigMask SupportedConfigs(Collective collective);

// Returns the model's input for a communicator on `fabric`. A pure function, so equal on all ranks.
CostModelInput HostcclModel(const Fabric& fabric);

}  // namespace dynamiccl::hostccl
