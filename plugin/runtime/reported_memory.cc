// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/reported_memory.h"

#include "plugin/border/no_throw.h"
#include "src/base/log.h"

namespace dynamiccl {

void ReportedMemory::Update(uint64_t free_bytes, uint64_t total_bytes) noexcept {
  const std::lock_guard lock(mutex_);
  level_.Take(free_bytes, total_bytes);
  const MemoryPressure now = level_.level();
  const int before = pressure_.exchange(static_cast<int>(now));
  if (before == static_cast<int>(now) || (before < 0 && now == MemoryPressure::kLow)) return;
  NoThrow([&] {
    Log(LogLevel::kInfo, "memory pressure is {}: {} of {} MiB are free", Name(now), free_bytes >> 20,
        total_bytes >> 20);
  });
}

}  // namespace dynamiccl
