// SPDX-License-Identifier: Apache-2.0
// An emulated link: it computes when a message that is posted now arrives at the other end. It moves no data;
// receivers wait for the arrival time (connection.h).
//
//   arrival = max(now, time at which the link is free) + bytes / bandwidth + latency + jitter
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/transport/link_state.h"
#include "src/transport/link_timeline.h"

namespace dynamiccl {

// Nanoseconds that `bytes` take over a link of this shape, beginning at `start_ns` after the links were made.
// It depends on `start_ns` only through bursts of load.
int64_t TransferNs(const LinkShape& shape, uint64_t seed, int64_t start_ns, size_t bytes);
// Random delay, in nanoseconds, of message number `message`: exponentially distributed, at most ten times the
// mean.
int64_t JitterNs(const LinkShape& shape, uint64_t seed, uint64_t message);

// One direction of a rail as one sender sees it. Senders in other processes have objects of their own over
// the same LinkState, which makes them queue behind each other. One thread at a time; it cannot fail.
class ShapedLink {
 public:
  // `seed` names the link: jitter and bursts follow from it alone. Both pointers must outlive the object.
  ShapedLink(LinkTimeline timeline, uint64_t seed, LinkState* state, const JobClock* clock);

  // Books the link for a message of `bytes` and returns its arrival in nanoseconds of CLOCK_MONOTONIC.
  int64_t Schedule(int64_t now_ns, size_t bytes);
  // The shape of the link at this moment, with events and orders.
  const LinkShape& ShapeAt(int64_t now_ns) {
    Refresh(now_ns);
    return shape_;
  }

 private:
  // Rebuilds the shape if an event or an order began or ended since the last message. The usual case is three
  // comparisons.
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
