// SPDX-License-Identifier: Apache-2.0
// The releases of NCCL that can be run on this machine. Their tuner interfaces and their logs differ.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <vector>

namespace dynamiccl::real_nccl {

struct NcclRelease {
  int major = 0;
  int minor = 0;
  int patch = 0;

  auto operator<=>(const NcclRelease&) const = default;
  std::string text() const;  // "2.28.9"

  // The newest version of the tuner interface that the release knows. 0 means none.
  int tuner_version() const;
  // The log reports no choice, but the profiler interface does.
  bool logs_no_choice() const { return minor == 23; }
  // The log reports function, names and channels of each choice (2.24 and later). Older logs report only the
  // numbers of algorithm and protocol.
  bool tells_channels() const { return *this >= NcclRelease{2, 24, 0}; }
  // A tuner's channels are an upper limit (2.31 and later). In older releases they replace NCCL's.
  bool only_limits_channels() const { return *this >= NcclRelease{2, 31, 0}; }
  // The release accepts NCCL_TUNER_PLUGIN=STATIC_PLUGIN.
  bool has_static_plugin() const { return *this >= NcclRelease{2, 22, 0}; }
  // The release loads a plugin only by a file name that the loader finds, not by a path.
  bool loads_plugins_by_name_only() const { return *this == NcclRelease{2, 27, 3}; }
  // The log does not report a pair that a tuner named (2.21 and earlier).
  bool hides_tuners_choice() const { return *this < NcclRelease{2, 22, 0}; }
  // Several ranks can use one GPU with NCCL_MULTI_RANK_GPU_ENABLE.
  bool shares_gpus() const { return *this >= NcclRelease{2, 30, 3}; }
};

// Parses a text such as "2.28.9". Returns nothing for any other form.
std::optional<NcclRelease> ParseRelease(const std::string& text);

// Returns the folder where tools/setup/fetch_nccl.sh put the release's library. Returns nothing when the
// release was not fetched.
std::optional<std::string> FindNcclLibraryFolder(const NcclRelease& release);
// Returns all releases in the user's cache, the oldest first.
std::vector<NcclRelease> FetchedReleases();

// Returns a message with the command that fetches the release, or an empty string when the release is in the
// cache. Tests of a release that is not in the cache are skipped.
std::string WhyNotFetched(const NcclRelease& release);
// Returns why the release cannot be run and what to do, or an empty string when it can be run. A release that
// was fetched and cannot be run is a failure, never a skip.
std::string WhyNotRunnable(const NcclRelease& release);

}  // namespace dynamiccl::real_nccl
