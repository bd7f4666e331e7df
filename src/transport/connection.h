// SPDX-License-Identifier: Apache-2.0
// The two ends of a Fifo, for slots (Simple) and for lines (LL, LL128). Used by one thread at a time.
#pragma once

#include <cstdint>
#include <limits>

#include "src/base/clock.h"
#include "src/transport/doorbell.h"
#include "src/transport/fifo.h"
#include "src/transport/shaped_link.h"

namespace dynamiccl {

// Arrival of a message that was not posted yet.
inline constexpr int64_t kNotPosted = std::numeric_limits<int64_t>::max();

template <uint64_t kCount>
class SendEnd {
 public:
  SendEnd() = default;
  // `link` null: not shaped; `relayed`: the receiver is on another host. All pointers must outlive the
  // object.
  SendEnd(FifoCounters<kCount>* counters, Doorbell* receiver, ShapedLink* link, bool relayed = false)
      : counters_(counters), receiver_(receiver), link_(link), relayed_(relayed) {}

  uint64_t step() const { return step_; }
  bool HasCredit() {
    if (step_ - released_ < kCount) return true;
    released_ = counters_->head.load(std::memory_order_acquire);
    return step_ - released_ < kCount;
  }
  // `wire_bytes` is what the message takes on an emulated link.
  void Post(size_t wire_bytes) {
    if (link_ != nullptr) {
      const int64_t arrival = link_->Schedule(MonotonicNanoseconds(), wire_bytes);
      counters_->arrival_ns[step_ % kCount].store(arrival, std::memory_order_relaxed);
    }
    if (relayed_) {
      const auto bytes = static_cast<uint32_t>(wire_bytes);
      counters_->wire_bytes[step_ % kCount].store(bytes, std::memory_order_relaxed);
    }
    counters_->tail.store(++step_, std::memory_order_release);
    receiver_->Ring();
  }
  // Instead of 0, before the first message and at both ends: for tests of what happens after 2^30 messages.
  void StartAt(uint64_t step) {
    step_ = released_ = step;
    counters_->tail.store(step, std::memory_order_release);
  }

 private:
  FifoCounters<kCount>* counters_ = nullptr;
  Doorbell* receiver_ = nullptr;
  ShapedLink* link_ = nullptr;
  bool relayed_ = false;
  uint64_t step_ = 0;
  uint64_t released_ = 0;  // last head seen
};

template <uint64_t kCount>
class ReceiveEnd {
 public:
  ReceiveEnd() = default;
  ReceiveEnd(FifoCounters<kCount>* counters, Doorbell* sender, bool shaped)
      : counters_(counters), sender_(sender), shaped_(shaped) {}

  uint64_t step() const { return step_; }
  bool shaped() const { return shaped_; }
  bool Posted() {
    if (step_ < posted_) return true;
    posted_ = counters_->tail.load(std::memory_order_acquire);
    return step_ < posted_;
  }
  // When the next message may be read: kNotPosted, 0 for an unshaped link, else CLOCK_MONOTONIC.
  int64_t Arrival() {
    if (!Posted()) return kNotPosted;
    return shaped_ ? counters_->arrival_ns[step_ % kCount].load(std::memory_order_relaxed) : 0;
  }
  void Release() {
    counters_->head.store(++step_, std::memory_order_release);
    sender_->Ring();
  }
  // As SendEnd::StartAt.
  void StartAt(uint64_t step) {
    step_ = posted_ = step;
    counters_->head.store(step, std::memory_order_release);
  }

 private:
  FifoCounters<kCount>* counters_ = nullptr;
  Doorbell* sender_ = nullptr;
  bool shaped_ = false;
  uint64_t step_ = 0;
  uint64_t posted_ = 0;  // last tail seen
};

// Both directions between this rank and one peer on one channel.
struct Connection {
  Fifo* outgoing = nullptr;
  Fifo* incoming = nullptr;
  SendEnd<kSlots> simple_send;
  ReceiveEnd<kSlots> simple_receive;
  SendEnd<kLlSlots> ll_send;
  ReceiveEnd<kLlSlots> ll_receive;
  SendEnd<kLl128Slots> ll128_send;
  ReceiveEnd<kLl128Slots> ll128_receive;
};

}  // namespace dynamiccl
