// SPDX-License-Identifier: Apache-2.0
// The programs that the driver's ranks can run, one function each.
#pragma once

#include <string_view>

#include "tests/real_nccl/driver/world.h"

namespace real_nccl_driver {

struct Program {
  std::string_view name;
  void (*run)(Rank& rank) = nullptr;
  NewerFunction needs = {};  // the program is skipped where the release lacks it; most need none
};

// Returns null when no program has this name.
const Program* FindProgram(std::string_view name);
// Returns "collectives groups ..." for the usage message.
std::string ProgramNames();

// Issues every collective at every size in one fixed order. Repeats all of it as often as the world says.
void RunCollectives(Rank& rank);
// Issues groups that NCCL merges, groups of several operations, nested and empty groups, a simulated group,
// and broadcasts of several roots.
void RunGroups(Rank& rank);
// Splits communicators by node and by local rank, and makes a second communicator of all ranks. Issues
// collectives on each of them, and sends and receives.
void RunCommunicators(Rank& rank);
// Uses communicators with different ncclConfig_t, and calls with an ncclCollConfig_t (2.31 and later).
void RunConfigs(Rank& rank);
// Uses a communicator that does not block, and polls every call until it is complete.
void RunNonBlocking(Rank& rank);
// Issues calls on a communicator, which a watchdog thread then aborts. A new communicator replaces it.
void RunAbort(Rank& rank);
// Issues calls on a stream that is being captured, between calls that are not captured.
void RunCapture(Rank& rank);
// Uses buffers that are registered with the communicator (2.19 and later).
void RunRegistered(Rank& rank);
// Uses buffers in symmetric windows (2.27.3 and later).
void RunWindows(Rank& rank);
// Makes the calls of nccl-tests' *_perf programs, in their order.
void RunNcclTests(Rank& rank);
// Makes the calls of PyTorch's ProcessGroupNCCL, in their order.
void RunProcessGroup(Rank& rank);
// Makes the calls of PyTorch's nccl2, in their order (2.19 and later).
void RunNccl2(Rank& rank);

}  // namespace real_nccl_driver
