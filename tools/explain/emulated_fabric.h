// SPDX-License-Identifier: Apache-2.0
// The fabric that a job over hostccl finds on a topology, without starting the job.
#pragma once

#include <string>

#include "src/base/status.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

// Returns the context in which a policy would be asked on the topology `name_or_path` (LoadTopology), with
// hostccl's default number of channels. With `n_ranks` 0 there are as many ranks as the topology has room
// for. If the topology does not limit the ranks, there is one rank for each node, and at least two. Returns
// kInvalidArgument if the topology has room for fewer than `n_ranks` ranks.
Result<MeasurementContext> EmulatedFabric(const std::string& name_or_path, int n_ranks);

}  // namespace dynamiccl
