// SPDX-License-Identifier: Apache-2.0
// Where the scripts of tools/setup keep what they fetched for this user.
#pragma once

#include <filesystem>

namespace dynamiccl {

// dynamiccl in $XDG_CACHE_HOME, or in ~/.cache where that is not set. Need not exist.
std::filesystem::path CacheFolder();

}  // namespace dynamiccl
