// SPDX-License-Identifier: Apache-2.0
// On how many nodes a communicator lies, where nobody was told: only a tuner hears it from NCCL, and a
// recorder by itself writes 1.
#pragma once

#include "traces/format/trace.h"

namespace dynamiccl {

// Writes the number of hosts into the Communicator records of those that no tuner was asked about and all of
// whose ranks are in the trace. NCCL counts nodes alike: by host name and boot. Emulated nodes of one host
// cannot be seen so; they stay 1.
void CountNodesByHost(Trace& trace);

}  // namespace dynamiccl
