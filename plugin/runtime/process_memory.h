// SPDX-License-Identifier: Apache-2.0
// States how short of memory this process is, according to the program's own reports (dynamicclMarkMemory),
// else according to samples of the device's memory, or of the host's where there is no device.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include "src/base/host_memory.h"
#include "src/decision/guard/memory_level.h"

namespace dynamiccl {

// Owned by the process's runtime; any thread.
class ProcessMemory {
 public:
  // Takes what the program reports, about once a step. From then on no samples are taken, since the program
  // knows more: its allocator may hold free memory that the device counts as taken.
  void Report(const MemorySizes& sizes) noexcept;
  // Takes a sample if the last one is a second old or more, and returns it. `now_ns` is any monotonic clock,
  // the same one at each call. The calling thread must be one that issues calls, whose context names the
  // device.
  std::optional<MemorySizes> SampleIfDue(int64_t now_ns) noexcept;
  // A MemoryPressure; -1: nothing was reported or sampled.
  int pressure() const { return pressure_.load(); }

 private:
  // Logs a change of the level.
  void Take(const MemorySizes& sizes) noexcept;

  std::mutex mutex_;  // guards level_
  MemoryLevel level_;
  std::atomic<int> pressure_{-1};
  std::atomic<bool> reported_{false};
  std::atomic<int64_t> next_sample_ns_{0};
};

}  // namespace dynamiccl
