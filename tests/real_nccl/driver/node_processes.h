// SPDX-License-Identifier: Apache-2.0
// Nodes that are unlike: a process each, since NCCL and its plugins read a machine once a process.
#pragma once

#include <functional>
#include <string>

namespace real_nccl_driver {

// Calls `run` for each node in a process of its own, in which the machine and the topology are those of
// FOLDER/<node>.machine and FOLDER/<node>.xml. Returns 0 when all returned 0. The first that fails ends the
// others: then its exit code is returned, or this process ends by its signal. To be called before NCCL.
int RunNodeProcesses(int nodes, const std::string& folder, const std::function<int(int node)>& run);

}  // namespace real_nccl_driver
