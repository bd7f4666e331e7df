// SPDX-License-Identifier: Apache-2.0
// Runs nodes with different machines as one process each. NCCL and its plugins read the machine only once in
// a process.
#pragma once

#include <functional>
#include <string>

namespace real_nccl_driver {

// Calls `run` for each node in a process of its own. The process uses the machine FOLDER/<node>.machine and
// the topology FOLDER/<node>.xml. Returns 0 when all processes returned 0. When one process fails, the others
// are killed. Its exit code is then returned, or its signal ends this process. Call this function before any
// NCCL call.
int RunNodeProcesses(int nodes, const std::string& folder, const std::function<int(int node)>& run);

}  // namespace real_nccl_driver
