// SPDX-License-Identifier: Apache-2.0
// Finds the library of NCCL that a user names by a release or a path, and the releases in the user's cache.
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

// Finds the library that each word names: a release in the user's cache ("2.28.9"), the path of a
// libnccl.so.2, or the path of a folder that holds one, for example in a torch wheel. The version is read
// from the file without loading the library. One error names all releases that the cache lacks.
Result<std::vector<ReleaseLibrary>> FindReleaseLibraries(const std::vector<std::string>& words);

// The releases of the cache, the oldest first.
std::vector<ReleaseLibrary> CachedReleases();

// Finds the version in the text "NCCL version 2.28.9+cuda13.0", which each build of NCCL contains. Returns
// nothing if `content` has no such text.
std::optional<real_nccl::NcclRelease> ReleaseInText(std::string_view content);

}  // namespace dynamiccl
