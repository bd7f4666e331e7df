// SPDX-License-Identifier: Apache-2.0
// Finds releases in the user's cache.
#include "tests/real_nccl/nccl_release.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "tests/real_nccl/cuda_standin/elf_symbols.h"

namespace dynamiccl::real_nccl {

std::string NcclRelease::text() const {
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

// NCCL's src/misc/tuner.cc and src/plugin/tuner.cc of the releases.
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

std::vector<NcclRelease> KnownReleases() {
  return {{2, 19, 3}, {2, 20, 5}, {2, 21, 5}, {2, 22, 3}, {2, 23, 4}, {2, 24, 3}, {2, 25, 1},
          {2, 26, 5}, {2, 27, 7}, {2, 28, 9}, {2, 29, 7}, {2, 30, 7}, {2, 31, 2}, {2, 32, 3}};
}

std::optional<std::string> FindNcclLibraryFolder(const NcclRelease& release) {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::string root =
      cache != nullptr && *cache != '\0' ? cache : std::string(home == nullptr ? "" : home) + "/.cache";
  const std::string folder = root + "/dynamiccl/wheels/nccl-" + release.text() + "/nvidia/nccl/lib";
  if (!std::filesystem::exists(folder + "/libnccl.so.2")) return std::nullopt;
  return folder;
}

std::string WhyNotRunnable(const NcclRelease& release) {
  const std::string fetch = "; run: tools/setup/fetch_nccl.sh " + release.text();
  const auto folder = FindNcclLibraryFolder(release);
  if (!folder) return "no NCCL " + release.text() + " in the cache" + fetch;
  std::string error;
  const auto functions = cuda_standin::ReadFunctionSymbols(*folder + "/libnccl.so.2", &error);
  if (!functions) return error + fetch;
  if (functions->empty()) return *folder + "/libnccl.so.2 is stripped" + fetch;
  return "";
}

}  // namespace dynamiccl::real_nccl
