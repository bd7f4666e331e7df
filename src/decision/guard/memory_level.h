// SPDX-License-Identifier: Apache-2.0
// How short of memory a device is. The level changes only when the measure is clearly beyond a border, so
// noise at one makes no new versions.
#pragma once

#include <cstdint>
#include <string_view>

namespace dynamiccl {

enum class MemoryPressure : uint8_t { kLow = 0, kMedium = 1, kHigh = 2 };
std::string_view Name(MemoryPressure pressure);

class MemoryLevel {
 public:
  void Take(uint64_t free_bytes, uint64_t total_bytes);
  MemoryPressure level() const { return level_; }

 private:
  MemoryPressure level_ = MemoryPressure::kLow;
};

}  // namespace dynamiccl
