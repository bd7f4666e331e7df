// SPDX-License-Identifier: Apache-2.0
// The level follows from the free share of the memory, with a margin on both sides of each border
// (hysteresis).
#include "src/decision/guard/memory_level.h"

namespace dynamiccl {
namespace {

// Free share below which the pressure is high. Allocators begin to return cached blocks at about a tenth
// left.
constexpr double kHighBelow = 0.10;
// Free share below which the pressure is medium.
constexpr double kMediumBelow = 0.25;
// The level changes only when a measurement lies beyond a border by this share.
constexpr double kMemoryMargin = 0.02;

MemoryPressure PressureOf(double free) {
  if (free < kHighBelow) return MemoryPressure::kHigh;
  return free < kMediumBelow ? MemoryPressure::kMedium : MemoryPressure::kLow;
}

}  // namespace

void MemoryLevel::Take(uint64_t free_bytes, uint64_t total_bytes) {
  if (total_bytes == 0) return;
  const double free = static_cast<double>(free_bytes) / static_cast<double>(total_bytes);
  const MemoryPressure tight = PressureOf(free - kMemoryMargin);
  const MemoryPressure loose = PressureOf(free + kMemoryMargin);
  if (tight == loose || (level_ != tight && level_ != loose)) level_ = PressureOf(free);
}

}  // namespace dynamiccl
