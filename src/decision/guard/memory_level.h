// SPDX-License-Identifier: Apache-2.0
// Says how short of memory a device is, in three levels.
#pragma once

#include <cstdint>

#include "src/collective/role.h"

namespace dynamiccl {

// The level of one device. A plain value for one thread. The level changes only when the measured share is
// clearly beyond a border, so noise near a border causes no changes of the level.
class MemoryLevel {
 public:
  // Adds a measurement, in bytes. A total of 0 is ignored.
  void Take(uint64_t free_bytes, uint64_t total_bytes);
  MemoryPressure level() const { return level_; }

 private:
  MemoryPressure level_ = MemoryPressure::kLow;
};

}  // namespace dynamiccl
