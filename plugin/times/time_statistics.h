// SPDX-License-Identifier: Apache-2.0
// Says how long collectives took on this rank, by their configuration, for the metrics. A rank that arrives
// early waits inside the kernel for the others, so one rank's times are upper bounds. Compare the smallest
// times, or take the minimum over ranks.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>

#include "src/collective/collective.h"
#include "src/collective/collective_config.h"
#include "src/collective/size_class.h"

namespace dynamiccl {

// The key by which times are collected.
struct TimedKey {
  // CommunicatorInfo::id, or NCCL's commId if calls are not seen. 0: communicators whose times are kept only
  // as sums (TimeStatistics).
  uint64_t communicator = 0;
  Collective collective = Collective::kAllReduce;
  SizeClass size_class;
  CollectiveConfig config;  // the configuration that ran, with its channels

  // For ordered maps.
  auto AsTuple() const {
    return std::tuple(communicator, collective, size_class.index, config.algorithm, config.protocol,
                      config.channels);
  }
  friend bool operator<(const TimedKey& a, const TimedKey& b) { return a.AsTuple() < b.AsTuple(); }
  friend bool operator==(const TimedKey& a, const TimedKey& b) { return a.AsTuple() == b.AsTuple(); }
};

// The statistics of one key.
struct TimesOfKey {
  uint64_t count = 0;
  int64_t least_ns = 0;
  int64_t most_ns = 0;
  int64_t total_ns = 0;
};

// Owned by CollectiveTimes. Any thread. The functions take a lock and may allocate, so the program's threads
// do not call them while they issue calls. A job of weeks may make and destroy any number of communicators.
// So the times of those that were timed last are kept apart, and older ones are added up under the
// communicator 0. If more communicators are in use at a time, their times move there again and again.
class TimeStatistics {
 public:
  // The most communicators whose times are kept apart.
  static constexpr size_t kCommunicators = 256;

  void Add(const TimedKey& key, int64_t nanoseconds);
  // Returns nothing if no collective of the key was timed.
  std::optional<TimesOfKey> Find(const TimedKey& key) const;
  std::map<TimedKey, TimesOfKey> All() const;

 private:
  // Adds the times of the communicator that was timed longest ago to those of communicator 0.
  void MergeOldest();

  mutable std::mutex mutex_;
  std::map<TimedKey, TimesOfKey> times_;
  std::map<uint64_t, uint64_t> last_added_;  // by communicator: the number of its last time
  uint64_t added_ = 0;                       // number of times so far
};

}  // namespace dynamiccl
