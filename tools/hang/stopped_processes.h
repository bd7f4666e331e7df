// SPDX-License-Identifier: Apache-2.0
// Finds out whether a rank's process on this machine was stopped: by a signal, by a debugger, or by freezing
// its control group.
#pragma once

#include <cstdint>
#include <string>

#include "tools/hang/job_calls.h"

namespace dynamiccl {

// Sets `alive` and `stopped` of the process that writes the trace at `path`, which has this file mapped. Does
// nothing for a process of another machine, one that has ended, and one that this user may not read. `root`
// stands before /proc and /sys; tests pass another folder.
void NoteWhatStops(const std::string& path, JobProcess& process, const std::string& root = "");

}  // namespace dynamiccl
