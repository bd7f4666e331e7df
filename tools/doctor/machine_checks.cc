// SPDX-License-Identifier: Apache-2.0
// Checks the machine and what a sandbox permits. Only a refused memfd_create is a failure, because hostccl
// cannot work without it. Few cores, a small /dev/shm and a forbidden ptrace are warnings.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "src/base/unique_fd.h"
#include "src/collective/size_class.h"
#include "tools/doctor/check.h"
#include "tools/launch/launch_plan.h"

namespace dynamiccl {
namespace {

// Bytes that Docker gives /dev/shm by default. Programs that share memory through it (NCCL itself, PyTorch's
// loaders) need more.
constexpr uint64_t kSmallShmBytes = 64 << 20;

// Ranks on one core take turns, so their times say little about a machine on which each rank has its own
// core.
Finding CheckCores() {
  const unsigned cores = std::max(std::thread::hardware_concurrency(), 1u);
  return {"Cores", fmt::format("{}", cores), cores >= 2 ? Verdict::kOk : Verdict::kWarn,
          cores >= 2 ? "" : "ranks will share one core: times mean little"};
}

Finding CheckGpu() {
  return {"GPU", MachineHasGpu() ? "present" : "none: hostccl stands in for NCCL", Verdict::kOk, ""};
}

// Judges the total size of /dev/shm, no matter how much of it is in use.
Finding CheckShm() {
  struct statvfs info {};
  if (::statvfs("/dev/shm", &info) != 0) {
    return {"/dev/shm", "absent", Verdict::kWarn, "NVIDIA's NCCL needs it: mount -t tmpfs tmpfs /dev/shm"};
  }
  const uint64_t bytes = static_cast<uint64_t>(info.f_blocks) * info.f_frsize;
  const bool small = bytes <= kSmallShmBytes;
  return {"/dev/shm", FormatBytes(bytes), small ? Verdict::kWarn : Verdict::kOk,
          small ? "enough for hostccl, small for NVIDIA's NCCL: docker run --shm-size=1g" : ""};
}

// hostccl shares memory by memfd_create, which some sandboxes forbid.
Finding CheckMemfd() {
  const UniqueFd fd(::memfd_create("dynamiccl-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (fd.valid()) return {"memfd", "works", Verdict::kOk, ""};
  return {"memfd", "refused", Verdict::kFail,
          "hostccl shares memory by memfd_create: allow it in the sandbox's filter"};
}

// Yama's ptrace scope: 0 and 1 let a debugger attach or start a program, 2 and 3 do not. Without Yama the
// file is missing and the scope is 0.
Finding CheckPtrace() {
  int scope = 0;
  std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;
  const bool open = scope <= 1;
  return {"ptrace", fmt::format("yama scope {}", scope), open ? Verdict::kOk : Verdict::kWarn,
          open ? "" : "debuggers cannot attach to ranks; nothing of ours needs it"};
}

// True if a folder of PATH has the program.
bool InPath(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

// Launchers are found by name alone; whether they work is not tried.
Finding CheckLaunchers() {
  std::string found = "dynamiccl run";
  for (const char* launcher : {"torchrun", "srun", "mpirun", "flux"}) {
    if (InPath(launcher)) found += fmt::format(", {}", launcher);
  }
  return {"Launchers", found, Verdict::kOk, ""};
}

}  // namespace

std::vector<Finding> CheckMachine() {
  return {CheckCores(), CheckGpu(), CheckShm(), CheckMemfd(), CheckPtrace(), CheckLaunchers()};
}

}  // namespace dynamiccl
