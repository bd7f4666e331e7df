// SPDX-License-Identifier: Apache-2.0
#include "src/decision/guard/exposure.h"

#include <algorithm>

namespace dynamiccl {
namespace {

// A quarter of a key's time can vary by who is scheduled when; three quarters waited for is not hidden.
constexpr double kHiddenBelow = 0.25;
constexpr double kExposedAbove = 0.75;
constexpr double kMargin = 0.05;  // on either side of a border the level stays
constexpr int kFirstLevelCalls = 16;
constexpr double kFade = 1 - 1.0 / 64;

// Allocators begin to return cached blocks at about a tenth left.
constexpr double kHighBelow = 0.10;
constexpr double kMediumBelow = 0.25;
constexpr double kMemoryMargin = 0.02;

Criticality CriticalityOf(double share) {
  if (share < kHiddenBelow) return Criticality::kHidden;
  return share > kExposedAbove ? Criticality::kExposed : Criticality::kPartial;
}

MemoryPressure PressureOf(double free) {
  if (free < kHighBelow) return MemoryPressure::kHigh;
  return free < kMediumBelow ? MemoryPressure::kMedium : MemoryPressure::kLow;
}

}  // namespace

void ExposedShare::Take(int64_t exposed_ns, int64_t transfer_ns) {
  if (transfer_ns <= 0) return;
  const int64_t exposed = std::clamp<int64_t>(exposed_ns, 0, transfer_ns);
  exposed_ns_ = exposed_ns_ * kFade + static_cast<double>(exposed);
  transfer_ns_ = transfer_ns_ * kFade + static_cast<double>(transfer_ns);
  if (++calls_ < kFirstLevelCalls) return;
  const Criticality low = CriticalityOf(share() - kMargin);
  const Criticality high = CriticalityOf(share() + kMargin);
  // Both sides of the margin agree, or the level so far is none of the two.
  if (low == high || (level_ != low && level_ != high)) level_ = CriticalityOf(share());
}

void MemoryLevel::Take(uint64_t free_bytes, uint64_t total_bytes) {
  if (total_bytes == 0) return;
  const double free = static_cast<double>(free_bytes) / static_cast<double>(total_bytes);
  const MemoryPressure tight = PressureOf(free - kMemoryMargin);
  const MemoryPressure loose = PressureOf(free + kMemoryMargin);
  if (tight == loose || (level_ != tight && level_ != loose)) level_ = PressureOf(free);
}

}  // namespace dynamiccl
