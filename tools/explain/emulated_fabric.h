// SPDX-License-Identifier: Apache-2.0
// The fabric that a job over hostccl finds on a topology, without starting the job.
#pragma once

#include <string>

#include "src/base/status.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

// What a policy would be asked about on the topology `name_or_path` (LoadTopology) with hostccl's default
// number of channels. With `n_ranks` 0 there are as many ranks as the topology has places for, or one for
// each node and at least two where it does not say. kInvalidArgument when the ranks find no places.
Result<MeasurementContext> EmulatedFabric(const std::string& name_or_path, int n_ranks);

}  // namespace dynamiccl
