// SPDX-License-Identifier: Apache-2.0
// A generated run as a trace: one section a rank, with true labels, for training, replay and tests.
#pragma once

#include "traces/format/trace.h"
#include "traces/generators/framework_generator.h"

namespace dynamiccl {

// `ranks_per_node` gives how many nodes each communicator spans; 0: one node. Times are not those of any run:
// calls stand one millisecond apart, without durations. Equal input gives equal bytes.
Trace TraceOf(const GeneratedRun& run, int ranks_per_node);

}  // namespace dynamiccl
