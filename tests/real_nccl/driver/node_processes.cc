// SPDX-License-Identifier: Apache-2.0
#include "tests/real_nccl/driver/node_processes.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <set>

namespace real_nccl_driver {
namespace {

[[noreturn]] void BeNode(int node, const std::string& folder, const std::function<int(int node)>& run) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::string file = folder + "/" + std::to_string(node);
  setenv("CUDA_STANDIN_MACHINE", (file + ".machine").c_str(), 1);
  setenv("NCCL_TOPO_FILE", (file + ".xml").c_str(), 1);
  // The table is the same in every process. Only node 0, which has rank 0, writes it.
  if (node > 0) unsetenv("TABLE_TUNER_FILE");
  const int code = run(node);
  std::fflush(stdout);
  std::_Exit(code);
}

// Returns the child's exit code, or ends this process by the signal that ended the child.
int EndAs(int status) {
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  signal(WTERMSIG(status), SIG_DFL);
  raise(WTERMSIG(status));
  return 1;
}

}  // namespace

int RunNodeProcesses(int nodes, const std::string& folder, const std::function<int(int node)>& run) {
  std::set<pid_t> children;
  for (int node = 0; node < nodes; ++node) {
    const pid_t child = fork();
    if (child == 0) BeNode(node, folder, run);
    if (child > 0) children.insert(child);
  }
  int failed = static_cast<int>(children.size()) == nodes ? 0 : 1 << 8;
  while (!children.empty() && failed == 0) {
    int status = 0;
    children.erase(wait(&status));
    failed = status;
  }
  for (const pid_t child : children) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  return EndAs(failed);
}

}  // namespace real_nccl_driver
