// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>

#include "src/base/dynamic_library.h"
#include "tools/doctor/check.h"

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;

// The first release whose tuner interface the object speaks (v2).
constexpr int kOldestTunable = 22100;

// Folders in which the loader, a wheel or CUDA's packages put the library.
std::vector<fs::path> Folders() {
  std::vector<fs::path> folders;
  if (const char* list = std::getenv("LD_LIBRARY_PATH")) {
    std::istringstream words(list);
    for (std::string word; std::getline(words, word, ':');) folders.emplace_back(word);
  }
  for (const char* folder : {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
                             "/usr/lib", "/usr/local/lib", "/usr/local/cuda/lib64"}) {
    folders.emplace_back(folder);
  }
  return folders;
}

// site-packages/nvidia/nccl/lib of the active virtual environment, of ./.venv and of the user.
void AddWheelFolders(std::vector<fs::path>& folders) {
  std::vector<fs::path> roots{".venv"};
  if (const char* active = std::getenv("VIRTUAL_ENV")) roots.emplace_back(active);
  if (const char* home = std::getenv("HOME")) roots.emplace_back(fs::path(home) / ".local");
  std::error_code ignored;
  for (const fs::path& root : roots) {
    for (const auto& python : fs::directory_iterator(root / "lib", ignored)) {
      folders.push_back(python.path() / "site-packages/nvidia/nccl/lib");
    }
  }
}

std::string VersionText(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

Finding Inspect(const fs::path& path) {
  const auto library = DynamicLibrary::Open(path.string(), RTLD_LAZY | RTLD_LOCAL);
  if (!library)
    return {"NCCL", path.string(), Verdict::kWarn, "it does not load: " + library.error().message};
  const auto get_version = reinterpret_cast<int (*)(int*)>(library->Symbol("ncclGetVersion"));
  int version = 0;
  if (get_version == nullptr || get_version(&version) != 0) {
    return {"NCCL", path.string(), Verdict::kWarn, "it has no ncclGetVersion: not an NCCL library"};
  }
  Finding finding{"NCCL", fmt::format("{} {}", VersionText(version), path.string()), Verdict::kOk, ""};
  if (version < kOldestTunable) {
    finding.verdict = Verdict::kWarn;
    finding.advice = "before 2.21 calls are recorded, not tuned: use 2.21 or later";
  }
  return finding;
}

}  // namespace

std::vector<Finding> CheckNccl(const Installation& installation) {
  std::vector<fs::path> folders = Folders();
  AddWheelFolders(folders);
  if (!installation.hostccl_dir.empty()) folders.emplace_back(installation.hostccl_dir);
  std::set<fs::path> seen;
  std::vector<Finding> findings;
  for (const fs::path& folder : folders) {
    std::error_code ignored;
    const fs::path file = fs::canonical(folder / "libnccl.so.2", ignored);
    if (!ignored && seen.insert(file).second) findings.push_back(Inspect(file));
  }
  if (findings.empty()) {
    findings.push_back(
        {"NCCL", "none found", Verdict::kWarn,
         "a program that links NCCL statically cannot be tuned by preload; else install libnccl2"});
  }
  return findings;
}

}  // namespace dynamiccl
