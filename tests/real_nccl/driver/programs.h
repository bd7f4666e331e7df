// SPDX-License-Identifier: Apache-2.0
// What the driver's ranks can do, one function a program.
#pragma once

#include <string_view>

#include "tests/real_nccl/driver/world.h"

namespace real_nccl_driver {

struct Program {
  std::string_view name;
  void (*run)(Rank& rank) = nullptr;
  NewerFunction needs = {};  // without which the whole program is skipped; most need none
};

// Null for a name that no program has.
const Program* FindProgram(std::string_view name);
// "collectives groups ...", for the usage line.
std::string ProgramNames();

// Every collective at every size, in one fixed order; all of it as often as the world repeats.
void RunCollectives(Rank& rank);
// Merged groups, groups of several kinds, nested and empty groups, a simulated group, broadcasts of several
// roots.
void RunGroups(Rank& rank);
// Communicators of nodes and of equal local ranks (Split), a second one of all, sends and receives.
void RunCommunicators(Rank& rank);
// Communicators with unlike ncclConfig_t, and calls with an ncclCollConfig_t (2.31 and later).
void RunConfigs(Rank& rank);
// A communicator that does not block: every call is polled.
void RunNonBlocking(Rank& rank);
// A watchdog thread aborts the communicator while calls are issued; a new one takes its place.
void RunAbort(Rank& rank);
// Calls on a stream that is being captured, between calls that are not.
void RunCapture(Rank& rank);
// Buffers registered with the communicator (2.19 and later).
void RunRegistered(Rank& rank);
// Buffers in symmetric windows (2.27.3 and later).
void RunWindows(Rank& rank);
// The order of calls of nccl-tests' *_perf programs.
void RunNcclTests(Rank& rank);
// The order of calls of PyTorch's ProcessGroupNCCL.
void RunProcessGroup(Rank& rank);
// The order of calls of PyTorch's nccl2 (2.19 and later).
void RunNccl2(Rank& rank);

}  // namespace real_nccl_driver
