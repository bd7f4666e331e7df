// SPDX-License-Identifier: Apache-2.0
// How short of memory this rank's device is, by the program's reports (dynamicclMarkMemory).
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "src/decision/guard/memory_level.h"

namespace dynamiccl {

// Owned by the process's runtime; any thread.
class ReportedMemory {
 public:
  // Takes the sizes in bytes, which the program reports about once a step. Logs a change of the memory
  // pressure.
  void Update(uint64_t free_bytes, uint64_t total_bytes) noexcept;
  // Returns a MemoryPressure as a number; -1 if the program has reported nothing.
  int pressure() const { return pressure_.load(); }

 private:
  std::mutex mutex_;  // guards level_
  MemoryLevel level_;
  std::atomic<int> pressure_{-1};
};

}  // namespace dynamiccl
