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
// So only the communicators that were timed last keep separate times; the times of older ones are added up
// under communicator 0. If more than kCommunicators are in use at once, their times move to communicator 0
// again and again.
class TimeStatistics {
 public:
  // The most communicators that keep separate times.
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
  std::map<uint64_t, uint64_t> last_added_;  // by communicator: the value of added_ when it was last timed
  uint64_t added_ = 0;                       // number of durations added so far
};

}  // namespace dynamiccl
