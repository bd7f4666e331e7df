// SPDX-License-Identifier: Apache-2.0
#include "plugin/times/time_statistics.h"

#include <algorithm>

namespace dynamiccl {
namespace {

void AddTo(TimesOfKey& sum, const TimesOfKey& times) {
  sum.least_ns = sum.count == 0 ? times.least_ns : std::min(sum.least_ns, times.least_ns);
  sum.most_ns = std::max(sum.most_ns, times.most_ns);
  sum.total_ns += times.total_ns;
  sum.count += times.count;
}

}  // namespace

void TimeStatistics::Add(const TimedKey& key, int64_t nanoseconds) {
  const std::lock_guard lock(mutex_);
  AddTo(times_[key], {1, nanoseconds, nanoseconds, nanoseconds});
  if (key.communicator == 0) return;
  last_added_[key.communicator] = ++added_;
  if (last_added_.size() > kCommunicators) MergeOldest();
}

void TimeStatistics::MergeOldest() {
  const auto oldest = std::min_element(last_added_.begin(), last_added_.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
  const uint64_t communicator = oldest->first;
  last_added_.erase(oldest);
  const auto belongs = [&](const auto& each) { return each.first.communicator == communicator; };
  for (auto each = times_.lower_bound({communicator, Collective{}, {}, {Algorithm{}, Protocol{}, 0}});
       each != times_.end() && belongs(*each); each = times_.erase(each)) {
    TimedKey key = each->first;
    key.communicator = 0;
    AddTo(times_[key], each->second);
  }
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
