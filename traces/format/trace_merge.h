// SPDX-License-Identifier: Apache-2.0
// Puts the traces of several ranks together and checks that they are of the same run.
#pragma once

#include <vector>

#include "src/base/status.h"
#include "traces/format/trace.h"

namespace dynamiccl {

// Returns all sections, ordered by rank, then host and process, with nodes counted by host (nodes_by_host.h).
// Two sections of one known rank are an error.
Result<Trace> MergeTraces(std::vector<Trace> traces);

// On each communicator all ranks must have issued the same collectives in the same order, or the run was
// broken (NCCL would hang or corrupt data). The error names communicator, call and the two ranks. A rank
// whose process was killed may have fewer calls at the end, and one that lost records fewer at the start.
// Send and Recv differ by nature and do not count.
Status CheckRanksAgree(const Trace& trace);

// Counts the nodes of communicators from the hosts of their ranks. Only a tuner is told by NCCL how many
// nodes a communicator has; a recorder without one writes 1.

// Writes the number of hosts into the Communicator records of those communicators about which no tuner was
// asked and all of whose ranks are in the trace. NCCL counts nodes alike, by host name and boot. Emulated
// nodes of one host cannot be seen in this way; they stay 1.
void CountNodesByHost(Trace& trace);

}  // namespace dynamiccl
