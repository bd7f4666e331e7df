// SPDX-License-Identifier: Apache-2.0
// Counts the nodes of communicators from the hosts of their ranks. Only a tuner is told by NCCL how many
// nodes a communicator has; a recorder without one writes 1.
#pragma once

#include "traces/format/trace.h"

namespace dynamiccl {

// Writes the number of hosts into the Communicator records of those communicators about which no tuner was
// asked and all of whose ranks are in the trace. NCCL counts nodes alike, by host name and boot. Emulated
// nodes of one host cannot be seen in this way; they stay 1.
void CountNodesByHost(Trace& trace);

}  // namespace dynamiccl
