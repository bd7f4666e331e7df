// SPDX-License-Identifier: Apache-2.0
// Which NCCL a word of the user means, and which others are there to search in.
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"
#include "tests/real_nccl/nccl_release.h"

namespace dynamiccl {

struct ReleaseLibrary {
  real_nccl::NcclRelease release;
  std::string folder;  // with libnccl.so.2

  std::string text() const { return release.text(); }
};

// `word` is a release ("2.28.9") out of the user's cache, or the path of a libnccl.so.2 or of the folder that
// holds one: the one inside a torch wheel, or an installed one. Its version is read from the file, which is
// not loaded.
Result<ReleaseLibrary> FindReleaseLibrary(const std::string& word);

// The releases of the cache, the oldest first.
std::vector<ReleaseLibrary> CachedReleases();

// The version in the text "NCCL version 2.28.9+cuda13.0" that each build of NCCL holds; nothing without one.
std::optional<real_nccl::NcclRelease> ReleaseInText(std::string_view content);

}  // namespace dynamiccl
