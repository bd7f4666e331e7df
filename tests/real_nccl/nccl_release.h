// SPDX-License-Identifier: Apache-2.0
// The releases of NCCL that can be run here, and what differs between them as far as choices are concerned.
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

  // The newest version of the tuner interface that it knows; 0: none.
  int tuner_version() const;
  // Its log tells nothing, but its profiler interface does.
  bool logs_no_choice() const { return minor == 23; }
  // Its log tells function, names and channels of each choice (from 2.24 on); before, numbers of a pair only.
  bool tells_channels() const { return *this >= NcclRelease{2, 24, 0}; }
  // A tuner's channels are an upper limit (from 2.31 on); before, they replace NCCL's.
  bool only_limits_channels() const { return *this >= NcclRelease{2, 31, 0}; }
  // NCCL_TUNER_PLUGIN=STATIC_PLUGIN.
  bool has_static_plugin() const { return *this >= NcclRelease{2, 22, 0}; }
  // Its log says nothing of a pair that a tuner named (2.21 and before).
  bool hides_tuners_choice() const { return *this < NcclRelease{2, 22, 0}; }
  // Several ranks on one GPU, by NCCL_MULTI_RANK_GPU_ENABLE.
  bool shares_gpus() const { return *this >= NcclRelease{2, 30, 3}; }
};

// "2.28.9"; nothing for anything else.
std::optional<NcclRelease> ParseRelease(const std::string& text);

// Where tools/setup/fetch_nccl.sh put the library of a release, or nothing when it has not been fetched.
std::optional<std::string> FindNcclLibraryFolder(const NcclRelease& release);
// All releases in the user's cache, the oldest first.
std::vector<NcclRelease> FetchedReleases();

// The command that fetches the release; empty when it is in the cache. Tests of a release that is not there
// are skipped.
std::string WhyNotFetched(const NcclRelease& release);
// Why the release cannot be run, with what to do; empty when it can. A release that was fetched and cannot be
// run is a failure, never a skip.
std::string WhyNotRunnable(const NcclRelease& release);

}  // namespace dynamiccl::real_nccl
