// SPDX-License-Identifier: Apache-2.0
// An emulated link: it computes when a message that is posted now arrives at the other end. It moves no data;
// the receiver waits until the arrival time (connection.h).
//
//   arrival = max(now, time at which the link is free) + bytes / bandwidth + latency + jitter
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/transport/link_state.h"
#include "src/transport/link_timeline.h"

namespace dynamiccl {

// Returns the nanoseconds that `bytes` take over a link of this shape. `start_ns` is the start of the
// transfer in nanoseconds after the links were made; it matters only if the load comes in bursts.
int64_t TransferNs(const LinkShape& shape, uint64_t seed, int64_t start_ns, size_t bytes);
// Returns the random delay, in nanoseconds, of message number `message`. The delay is exponentially
// distributed, but at most ten times the mean.
int64_t JitterNs(const LinkShape& shape, uint64_t seed, uint64_t message);

// One direction of a rail as one sender sees it. Senders in other processes have their own objects over the
// same LinkState, so they queue behind each other. One thread at a time may use this object. No function
// fails.
class ShapedLink {
 public:
  // `seed` identifies the link and alone determines its jitter and bursts. Both pointers must outlive the
  // object.
  ShapedLink(LinkTimeline timeline, uint64_t seed, LinkState* state, const JobClock* clock);

  // Books the link for a message of `bytes` and returns the message's arrival in nanoseconds of
  // CLOCK_MONOTONIC.
  int64_t Schedule(int64_t now_ns, size_t bytes);
  // Returns the shape of the link at this moment, changed by the events and orders that are in force.
  const LinkShape& ShapeAt(int64_t now_ns) {
    Refresh(now_ns);
    return shape_;
  }

 private:
  // Rebuilds the shape if an event or an order began or ended since the last message. Usually it makes only
  // three comparisons.
  void Refresh(int64_t now_ns) {
    const bool called = by_calls_ && clock_->calls.load(std::memory_order_relaxed) != seen_calls_;
    if (called || now_ns >= valid_until_ns_ || state_->ordered.version() != seen_version_) Rebuild(now_ns);
  }
  void Rebuild(int64_t now_ns);

  LinkTimeline timeline_;
  uint64_t seed_;
  LinkState* state_;
  const JobClock* clock_;
  bool by_calls_;
  int64_t seen_calls_ = -1;
  int64_t epoch_ns_ = 0;
  uint64_t seen_version_ = 1;     // odd at first: never the version of a finished order
  int64_t valid_until_ns_ = 0;    // CLOCK_MONOTONIC
  OrderedChange::Order order_{};  // the last order that was read
  LinkShape shape_;
  int64_t latency_ns_ = 0;
  double ns_per_byte_ = 0;
  bool bursts_ = false;
};

}  // namespace dynamiccl
