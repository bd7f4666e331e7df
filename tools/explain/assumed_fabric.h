// SPDX-License-Identifier: Apache-2.0
// The fabric that policies are shown on where no measured one is named.
#pragma once

#include "traces/format/measurement.h"

namespace dynamiccl {

// NVLink inside nodes and InfiniBand between them, with NCCL's constants for Hopper.
MeasurementContext AssumedFabric(int n_ranks = 16, int n_nodes = 2);

}  // namespace dynamiccl
