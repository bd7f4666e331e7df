// SPDX-License-Identifier: Apache-2.0
// Says how much memory this process may still take from its host.
#pragma once

#include <cstdint>
#include <string>

namespace dynamiccl {

struct MemorySizes {
  uint64_t free_bytes = 0;
  uint64_t total_bytes = 0;  // 0: not known
};

// Returns the memory that the kernel can give without swapping (MemAvailable and MemTotal of /proc/meminfo).
// If the process's control group, or one above it, has a limit and less is left of it, returns that limit and
// what is left; file caches that the kernel may drop count as free. Reads control groups of version 1 and 2.
// `root` is put before every path. Any thread; some 50 us.
MemorySizes HostMemory(const std::string& root = "");

}  // namespace dynamiccl
