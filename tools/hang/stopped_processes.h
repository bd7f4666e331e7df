// SPDX-License-Identifier: Apache-2.0
// Finds out whether a rank's process on this machine was stopped: by a signal, by a debugger, or by freezing
// its control group.
#pragma once

#include <cstdint>
#include <string>

#include "tools/hang/job_calls.h"

namespace dynamiccl {

// Sets `alive` and `stopped` of the process that writes the trace at `path`. A process is recognised by
// having the file mapped, so processes of other machines, those that have ended and those that this user may
// not read are left as they are. `root` stands before /proc and /sys; tests pass another one.
void NoteWhatStops(const std::string& path, JobProcess& process, const std::string& root = "");

}  // namespace dynamiccl
