// SPDX-License-Identifier: Apache-2.0
// How short of memory this rank's device is, as the program says (dynamicclMarkMemory). Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "src/decision/guard/memory_level.h"

namespace dynamiccl {

class ToldMemory {
 public:
  // Logs a change of the level.
  void Take(uint64_t free_bytes, uint64_t total_bytes) noexcept;
  // A MemoryPressure; -1: nobody said.
  int pressure() const { return pressure_.load(); }

 private:
  std::mutex mutex_;  // guards level_
  MemoryLevel level_;
  std::atomic<int> pressure_{-1};
};

}  // namespace dynamiccl
