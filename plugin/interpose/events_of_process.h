// SPDX-License-Identifier: Apache-2.0
// Finds the functions for events in the program's streams: CUDA's in the driver that the process has loaded,
// or hostccl's. No driver is ever loaded.
#pragma once

#include "plugin/times/stream_events.h"

namespace dynamiccl {

// Returns the functions for events in this process; null if it has neither hostccl nor a CUDA driver. Only
// the first 64 calls search for a driver. The object is never destroyed. Any thread.
const StreamEvents* EventsOfProcess() noexcept;

}  // namespace dynamiccl
