// SPDX-License-Identifier: Apache-2.0
// Runs the driver on an unmodified libnccl.so.2 over the stand-in, and returns NCCL's output.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/real_nccl/nccl_release.h"
#include "tests/real_nccl/tuning_log.h"

namespace dynamiccl::real_nccl {

using Environment = std::map<std::string, std::string>;

// How libdynamiccl.so is loaded into the job.
enum class Door {
  kNone,
  kPreload,
  kTuner,         // named in NCCL_TUNER_PLUGIN only
  kBoth,          // preloaded, and named in NCCL_TUNER_PLUGIN
  kStaticPlugin,  // preloaded, with NCCL_TUNER_PLUGIN=STATIC_PLUGIN
};
std::string_view Name(Door door);
std::optional<Door> ParseDoor(std::string_view name);

struct RunRequest {
  NcclRelease release;
  std::string machine = "dgx_h100";  // machines/<machine>.machine, or a path with a '/'
  std::string scratch_folder;        // for the topology file and the output; must exist
  int nodes = 2;
  int ranks_per_node = 8;
  std::vector<size_t> bytes;            // NCCL's total of each call
  std::string program = "collectives";  // a program of the driver (driver/programs.h)
  uint64_t repeats = 1;
  Door door = Door::kNone;
  // These variables are added to the clean environment of every run. Values of LD_PRELOAD and LD_LIBRARY_PATH
  // are appended to the harness's own. All other values replace the harness's.
  Environment environment;
  int limit_s = 60;

  int ranks() const { return nodes * ranks_per_node; }
};

// The driver's exit code when the release lacks a function that the program needs.
constexpr int kNothingToRun = 6;

struct RunOutcome {
  int exit_code = -1;
  std::string output;
  std::vector<TuningLine> choices;
};

std::string MachineFile(const RunRequest& request);

// Returns the whole environment of the ranks' processes, and writes the topology file.
Environment JobEnvironment(const RunRequest& request);

// Runs all ranks as threads of one process. The environment holds nothing of the caller's.
RunOutcome RunDriver(const RunRequest& request);

// Runs one process for each rank. `own` has one entry for each rank, which is added to the environment. The
// output of 10^6 calls is too long to return: with `output_stays` it is left in
// <scratch_folder>/output_<rank>.
std::vector<RunOutcome> RunDriverProcesses(const RunRequest& request, const std::vector<Environment>& own,
                                           bool output_stays = false);

// Returns the names of NCCL's files in /dev/shm, sorted.
std::vector<std::string> SharedMemoryNames();
// Returns the names that are not in `before` (sorted) and that no living process uses. A run that began after
// `before` was taken has left these files. NCCL may leave files only when it is killed.
std::vector<std::string> LeftSharedMemory(const std::vector<std::string>& before);

}  // namespace dynamiccl::real_nccl
