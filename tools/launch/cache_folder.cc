// SPDX-License-Identifier: Apache-2.0
#include "tools/launch/cache_folder.h"

#include <cstdlib>

namespace dynamiccl {

std::filesystem::path CacheFolder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::filesystem::path root = cache != nullptr && *cache != '\0'
                                         ? std::filesystem::path(cache)
                                         : std::filesystem::path(home == nullptr ? "/" : home) / ".cache";
  return root / "dynamiccl";
}

}  // namespace dynamiccl
