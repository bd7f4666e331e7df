// SPDX-License-Identifier: Apache-2.0
#include "tools/launch/launch_plan.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "src/base/settings.h"
#include "src/base/unique_fd.h"

namespace dynamiccl {
namespace {

std::string Prepended(const std::string& first, const char* variable) {
  const char* present = std::getenv(variable);
  return present == nullptr || *present == '\0' ? first : first + ":" + present;
}

void SetIfGiven(EnvironmentChanges& changes, Setting setting, const std::string& value) {
  if (!value.empty()) changes[Row(setting).name] = value;
}

tl::unexpected<Error> MissingPart(const std::string& part, const Installation& installation) {
  return WithHint(
      MakeError(ErrorKind::kUnsupported, "this build has no {} under '{}'", part, installation.home),
      "build all targets (cmake --build), or name another installation with --home");
}

}  // namespace

Result<EnvironmentChanges> RuntimeEnvironment(const Installation& installation,
                                              const RuntimeOptions& options) {
  EnvironmentChanges changes;
  if (options.preload) {
    if (installation.preload.empty()) return MissingPart("libdynamiccl.so", installation);
    changes["LD_PRELOAD"] = Prepended(installation.preload, "LD_PRELOAD");
  }
  if (options.hostccl) {
    if (installation.hostccl_dir.empty()) return MissingPart("hostccl/libnccl.so.2", installation);
    changes["LD_LIBRARY_PATH"] = Prepended(installation.hostccl_dir, "LD_LIBRARY_PATH");
  }
  SetIfGiven(changes, Setting::kMode, options.mode);
  SetIfGiven(changes, Setting::kPolicy, options.policy);
  SetIfGiven(changes, Setting::kRules, options.rules);
  SetIfGiven(changes, Setting::kTrace, options.trace);
  SetIfGiven(changes, Setting::kDecisionLog, options.decision_log);
  SetIfGiven(changes, Setting::kHostcclTopology, options.topology);
  return changes;
}

EnvironmentChanges RankEnvironment(int rank, int n_ranks, int master_port) {
  EnvironmentChanges changes{{"RANK", std::to_string(rank)},
                             {"WORLD_SIZE", std::to_string(n_ranks)},
                             {"LOCAL_RANK", std::to_string(rank)},
                             {"LOCAL_WORLD_SIZE", std::to_string(n_ranks)},
                             {"GROUP_RANK", "0"},
                             {"MASTER_ADDR", "127.0.0.1"},
                             {"MASTER_PORT", std::to_string(master_port)}};
  // As torchrun does for more than one process: thread pools of all ranks would fight for the cores.
  if (n_ranks > 1 && std::getenv("OMP_NUM_THREADS") == nullptr)
    changes.emplace("OMP_NUM_THREADS", std::to_string(1));
  return changes;
}

Result<int> FreePort() {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  if (!fd.valid() || ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return MakeError(ErrorKind::kUnavailable, "no free TCP port on 127.0.0.1: {}", ErrnoText(errno));
  }
  return ntohs(address.sin_port);
}

bool MachineHasGpu() {
  return ::access("/dev/nvidiactl", F_OK) == 0 || ::access("/dev/dxg", F_OK) == 0;
}

}  // namespace dynamiccl
