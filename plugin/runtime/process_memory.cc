// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/process_memory.h"

#include "plugin/border/cuda_driver.h"
#include "plugin/border/no_throw.h"
#include "src/base/log.h"

namespace dynamiccl {
namespace {

constexpr int64_t kSampleEveryNs = 1'000'000'000;

}  // namespace

void ProcessMemory::Report(const MemorySizes& sizes) noexcept {
  reported_.store(true);
  Take(sizes);
}

std::optional<MemorySizes> ProcessMemory::SampleIfDue(int64_t now_ns) noexcept {
  int64_t due = next_sample_ns_.load(std::memory_order_relaxed);
  // If several threads get here at once, only one of them takes the sample.
  if (now_ns < due || reported_.load(std::memory_order_relaxed) ||
      !next_sample_ns_.compare_exchange_strong(due, now_ns + kSampleEveryNs))
    return std::nullopt;
  MemorySizes sizes = DeviceMemory();
  if (sizes.total_bytes == 0) NoThrow([&] { sizes = HostMemory(); });
  if (sizes.total_bytes == 0) return std::nullopt;
  Take(sizes);
  return sizes;
}

void ProcessMemory::Take(const MemorySizes& sizes) noexcept {
  const std::lock_guard lock(mutex_);
  level_.Take(sizes.free_bytes, sizes.total_bytes);
  const MemoryPressure now = level_.level();
  const int before = pressure_.exchange(static_cast<int>(now));
  if (before == static_cast<int>(now) || (before < 0 && now == MemoryPressure::kLow)) return;
  NoThrow([&] {
    Log(LogLevel::kInfo, "memory pressure is {}: {} of {} MiB are free", Name(now), sizes.free_bytes >> 20,
        sizes.total_bytes >> 20);
  });
}

}  // namespace dynamiccl
