// SPDX-License-Identifier: Apache-2.0
#include "plugin/times/time_statistics.h"

#include <algorithm>

namespace dynamiccl {

void TimeStatistics::Add(const TimedKey& key, int64_t nanoseconds) {
  const std::lock_guard lock(mutex_);
  TimesOfKey& times = times_[key];
  times.least_ns = times.count == 0 ? nanoseconds : std::min(times.least_ns, nanoseconds);
  times.most_ns = std::max(times.most_ns, nanoseconds);
  times.total_ns += nanoseconds;
  ++times.count;
}

std::optional<TimesOfKey> TimeStatistics::Find(const TimedKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = times_.find(key);
  return found == times_.end() ? std::nullopt : std::optional(found->second);
}

std::map<TimedKey, TimesOfKey> TimeStatistics::All() const {
  const std::lock_guard lock(mutex_);
  return times_;
}

}  // namespace dynamiccl
