// SPDX-License-Identifier: Apache-2.0
// An emulated link: when a message that is posted now has arrived at the other end.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/transport/link_state.h"
#include "src/transport/link_timeline.h"

namespace dynamiccl {

// Nanoseconds that `bytes` take over a link of this shape from `start_ns` on, counted from when the links
// were made.
int64_t TransferNs(const LinkShape& shape, uint64_t seed, int64_t start_ns, size_t bytes);
// Random delay of a link's message number `message`, at most ten times the mean.
int64_t JitterNs(const LinkShape& shape, uint64_t seed, uint64_t message);

// One direction of a rail as a sender sees it. Senders in other processes have objects of their own over the
// same LinkState. Used by one thread at a time.
class ShapedLink {
 public:
  // `seed` names the link: jitter and bursts follow from it alone. Both pointers must outlive the object.
  ShapedLink(LinkTimeline timeline, uint64_t seed, LinkState* state, const JobClock* clock);

  // Books the link for the message and returns its arrival: max(now, link free) + bytes / bandwidth + latency
  // + jitter.
  int64_t Schedule(int64_t now_ns, size_t bytes);
  // What the link is like at this moment.
  const LinkShape& ShapeAt(int64_t now_ns) {
    Refresh(now_ns);
    return shape_;
  }

 private:
  // Looks for an event or an order that came or ended since the last message.
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
  uint64_t seen_version_ = 1;     // odd: never that of a finished order
  int64_t valid_until_ns_ = 0;    // CLOCK_MONOTONIC
  OrderedChange::Order order_{};  // the last one read
  LinkShape shape_;
  int64_t latency_ns_ = 0;
  double ns_per_byte_ = 0;
  bool bursts_ = false;
};

}  // namespace dynamiccl
