// SPDX-License-Identifier: Apache-2.0
// Turns the options of a launch into environment variables.
#include "tools/launch/launch_plan.h"

#include <unistd.h>

#include <cstdlib>

#include "src/base/settings.h"

namespace dynamiccl {
namespace {

// `first`, followed by what the variable holds now: the dynamic linker searches these lists from the front.
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
  if (!options.framework_settings.empty() || !options.framework_report.empty()) {
    if (installation.startup_dir.empty()) return MissingPart("python/dynamiccl_startup", installation);
    changes["PYTHONPATH"] = Prepended(installation.startup_dir, "PYTHONPATH");
  }
  SetIfGiven(changes, Setting::kFrameworkSettings, options.framework_settings);
  SetIfGiven(changes, Setting::kFrameworkReport, options.framework_report);
  SetIfGiven(changes, Setting::kTimes, options.times);
  SetIfGiven(changes, Setting::kMode, options.mode);
  SetIfGiven(changes, Setting::kPolicy, options.policy);
  SetIfGiven(changes, Setting::kRules, options.rules);
  SetIfGiven(changes, Setting::kSiteStore, options.site_store);
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
  // torchrun does the same for more than one process: the thread pools of all ranks would compete for the
  // cores.
  if (n_ranks > 1 && std::getenv("OMP_NUM_THREADS") == nullptr)
    changes.emplace("OMP_NUM_THREADS", std::to_string(1));
  return changes;
}

bool MachineHasGpu() {
  // The device files of NVIDIA's driver on Linux, and of WSL 2, where the GPU is reached through /dev/dxg.
  return ::access("/dev/nvidiactl", F_OK) == 0 || ::access("/dev/dxg", F_OK) == 0;
}

}  // namespace dynamiccl
