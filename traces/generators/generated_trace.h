// SPDX-License-Identifier: Apache-2.0
// A generated run as a trace: one section per rank, with true labels, for training, replay and tests.
#pragma once

#include "traces/format/trace.h"
#include "traces/generators/framework_generator.h"

namespace dynamiccl {

// `ranks_per_node` determines how many nodes each communicator spans; 0: one node. The times are artificial:
// calls are one millisecond apart and have no durations. Equal input gives equal bytes.
Trace TraceOf(const GeneratedRun& run, int ranks_per_node);

}  // namespace dynamiccl
