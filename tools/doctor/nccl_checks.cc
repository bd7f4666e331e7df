// SPDX-License-Identifier: Apache-2.0
// Searches the usual folders for libnccl.so.2 and asks each copy for its version. The folders are, in this
// order, LD_LIBRARY_PATH, the system's library folders, CUDA's, the wheels of Python environments, and
// hostccl's. A copy that several folders reach through links is listed once:
//
//   OK    NCCL       2.30.7 /usr/lib/x86_64-linux-gnu/libnccl.so.2.30.7
//
// Which of them a job loads is the loader's decision and is not predicted here.
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>

#include "src/base/dynamic_library.h"
#include "tools/canary/known_issues.h"
#include "tools/doctor/check.h"

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;

// NCCL's version code of release 2.21. It is the first release with a tuner interface (v2) that DynamICCL
// supports.
constexpr int kOldestTunable = 22100;

// Folders where the loader or CUDA's packages put the library.
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

// Adds the folders in which pip puts NCCL's wheel: site-packages/nvidia/nccl/lib of ./.venv, of the active
// virtual environment and of the user.
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

// Writes NCCL's version code, which since 2.9 is 10000 * major + 100 * minor + patch, as people do: 23007 is
// "2.30.7".
std::string VersionText(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

// Loads the library, which runs its constructors, and calls ncclGetVersion. If the library has no such
// function, `version` keeps its value.
Finding Inspect(const fs::path& path, int* version) {
  const auto library = DynamicLibrary::Open(path.string(), RTLD_LAZY | RTLD_LOCAL);
  if (!library)
    return {"NCCL", path.string(), Verdict::kWarn, "it does not load: " + library.error().message};
  const auto get_version = reinterpret_cast<int (*)(int*)>(library->Symbol("ncclGetVersion"));
  if (get_version == nullptr || get_version(version) != 0) {
    return {"NCCL", path.string(), Verdict::kWarn, "it has no ncclGetVersion: not an NCCL library"};
  }
  Finding finding{"NCCL", fmt::format("{} {}", VersionText(*version), path.string()), Verdict::kOk, ""};
  if (*version < kOldestTunable) {
    finding.verdict = Verdict::kWarn;
    finding.advice = "before 2.21 calls are recorded, not tuned: use 2.21 or later";
  }
  return finding;
}

// Returns a finding for each publicly reported fault that the release has and a later release no longer has.
// Faults that no release has fixed are left out, because an upgrade would not help.
std::vector<Finding> KnownFaultsOf(const Installation& installation, int version) {
  const real_nccl::NcclRelease release{version / 10000, version / 100 % 100, version % 100};
  std::vector<Finding> findings;
  const auto known = ReadKnownIssues(installation);
  if (!known) return findings;
  for (const KnownIssue& issue : *known) {
    if (!issue.Has(release) || !issue.until) continue;
    findings.push_back({fmt::format("NCCL {}", VersionText(version)),
                        fmt::format("{}: {}, on {}", issue.id, issue.title, issue.where), Verdict::kWarn,
                        fmt::format("where that is your machine: NCCL {}{}; {}", issue.until->text(),
                                    issue.remedy.empty() ? "" : ", or " + issue.remedy,
                                    issue.unjudged.empty() ? "`dynamiccl canary` tries releases on it"
                                                           : "not judgeable here: " + issue.unjudged)});
  }
  return findings;
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
    if (ignored || !seen.insert(file).second) continue;
    int version = 0;
    findings.push_back(Inspect(file, &version));
    // hostccl reports the version of an NCCL release, but does not have the faults of that release.
    if (file.parent_path() == fs::weakly_canonical(installation.hostccl_dir)) continue;
    for (Finding& fault : KnownFaultsOf(installation, version)) findings.push_back(std::move(fault));
  }
  if (findings.empty()) {
    findings.push_back(
        {"NCCL", "none found", Verdict::kWarn,
         "a program that links NCCL statically cannot be tuned by preload; else install libnccl2"});
  }
  return findings;
}

}  // namespace dynamiccl
