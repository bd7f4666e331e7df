// SPDX-License-Identifier: Apache-2.0
// Levels that the leader publishes with a table version, from what it measures: how much of a key's time the
// program waits for (criticality), and how short of memory the device is. Levels change only when the measure
// is clearly beyond a border, so noise at one makes no new versions.
#pragma once

#include <cstdint>

#include "src/collective/role.h"

namespace dynamiccl {

class ExposedShare {
 public:
  // Of `transfer_ns` of communication the program waited for `exposed_ns`.
  void Take(int64_t exposed_ns, int64_t transfer_ns);
  Criticality level() const { return level_; }
  double share() const { return transfer_ns_ <= 0 ? 0 : exposed_ns_ / transfer_ns_; }

 private:
  int calls_ = 0;
  double exposed_ns_ = 0;  // both fade
  double transfer_ns_ = 0;
  Criticality level_ = Criticality::kUnknown;
};

enum class MemoryPressure : uint8_t { kLow = 0, kMedium = 1, kHigh = 2 };

class MemoryLevel {
 public:
  void Take(uint64_t free_bytes, uint64_t total_bytes);
  MemoryPressure level() const { return level_; }

 private:
  MemoryPressure level_ = MemoryPressure::kLow;
};

}  // namespace dynamiccl
