// SPDX-License-Identifier: Apache-2.0
// Finds releases in the user's cache.
#include "tests/real_nccl/nccl_release.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "tests/real_nccl/cuda_standin/elf_symbols.h"

namespace dynamiccl::real_nccl {

std::string NcclRelease::text() const {
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

// The versions come from the releases' src/misc/tuner.cc and src/plugin/tuner.cc.
int NcclRelease::tuner_version() const {
  constexpr struct {
    NcclRelease since;
    int version;
  } kVersions[] = {{{2, 30, 3}, 6}, {{2, 28, 0}, 5}, {{2, 24, 0}, 4},
                   {{2, 22, 0}, 3}, {{2, 21, 0}, 2}, {{2, 19, 0}, 1}};
  for (const auto& row : kVersions) {
    if (*this >= row.since) return row.version;
  }
  return 0;
}

std::optional<NcclRelease> ParseRelease(const std::string& text) {
  NcclRelease release;
  int end = 0;
  if (std::sscanf(text.c_str(), "%d.%d.%d%n", &release.major, &release.minor, &release.patch, &end) != 3 ||
      end != static_cast<int>(text.size()))
    return std::nullopt;
  return release;
}

namespace {

std::filesystem::path Wheels() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::string root =
      cache != nullptr && *cache != '\0' ? cache : std::string(home == nullptr ? "" : home) + "/.cache";
  return root + "/dynamiccl/wheels";
}

constexpr std::string_view kFolderPrefix = "nccl-";

std::filesystem::path WheelOf(const NcclRelease& release) {
  return Wheels() / (std::string(kFolderPrefix) + release.text());
}

std::string FetchCommand(const NcclRelease& release) {
  return "run: tools/setup/fetch_nccl.sh " + release.text();
}

}  // namespace

std::optional<std::string> FindNcclLibraryFolder(const NcclRelease& release) {
  const std::filesystem::path folder = WheelOf(release) / "nvidia/nccl/lib";
  if (!std::filesystem::exists(folder / "libnccl.so.2")) return std::nullopt;
  return folder.string();
}

std::vector<NcclRelease> FetchedReleases() {
  std::vector<NcclRelease> releases;
  std::error_code no_cache;
  for (const auto& entry : std::filesystem::directory_iterator(Wheels(), no_cache)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kFolderPrefix)) continue;
    const auto release = ParseRelease(name.substr(kFolderPrefix.size()));
    if (release && FindNcclLibraryFolder(*release)) releases.push_back(*release);
  }
  std::sort(releases.begin(), releases.end());
  return releases;
}

std::string WhyNotFetched(const NcclRelease& release) {
  if (FindNcclLibraryFolder(release)) return "";
  return "no NCCL " + release.text() + " in the cache; " + FetchCommand(release);
}

std::string WhyNotRunnable(const NcclRelease& release) {
  const auto folder = FindNcclLibraryFolder(release);
  if (!folder) return WhyNotFetched(release);
  const std::string library = *folder + "/libnccl.so.2";
  std::string error;
  const auto functions = cuda_standin::ReadFunctionSymbols(library, &error);
  if (functions && !functions->empty()) return "";
  if (functions) error = library + " is stripped, so that its CUDA functions cannot be found";
  return error + "; remove " + WheelOf(release).string() + " and " + FetchCommand(release);
}

}  // namespace dynamiccl::real_nccl
