// SPDX-License-Identifier: Apache-2.0
// The two ends of a Fifo (fifo.h): SendEnd posts messages, ReceiveEnd releases them. There is one pair of
// ends for the slots of protocol Simple, one for LL and one for LL128. The ends only keep counters and ring
// doorbells; the protocols (src/hostccl/protocols) copy the data.
//
//   sender                                   receiver
//   while (!end.HasCredit()) wait;           while (end.Arrival() > now) wait;
//   write slot end.step() % kCount;          read slot end.step() % kCount;
//   end.Post(bytes);                         end.Release();
#pragma once

#include <cstdint>
#include <limits>

#include "src/base/clock.h"
#include "src/transport/doorbell.h"
#include "src/transport/fifo.h"
#include "src/transport/shaped_link.h"

namespace dynamiccl {

// Arrival time of a message that has not been posted yet.
inline constexpr int64_t kNotPosted = std::numeric_limits<int64_t>::max();

// The sending end of a Fifo with kCount slots. The rank's connection table owns the object, and one thread at
// a time may use it. The object does not own the memory that its pointers point to. No function fails or
// blocks.
template <uint64_t kCount>
class SendEnd {
 public:
  SendEnd() = default;
  // All pointers must outlive the object. `link` is null unless the link is emulated. `relayed` says that the
  // receiver is on another host; the relay then needs the size of each message.
  SendEnd(FifoCounters<kCount>* counters, Doorbell* receiver, ShapedLink* link, bool relayed = false)
      : counters_(counters), receiver_(receiver), link_(link), relayed_(relayed) {}

  // Returns the number of the next message, from 0.
  uint64_t step() const { return step_; }
  // Returns whether the next slot is free. It reads the shared counter `head` only if the value of `head`
  // that it read last shows no free slot.
  bool HasCredit() {
    if (step_ - released_ < kCount) return true;
    released_ = counters_->head.load(std::memory_order_acquire);
    return step_ - released_ < kCount;
  }
  // Publishes the slot number step() and rings the receiver's doorbell. `wire_bytes` is the number of bytes
  // that the message takes on an emulated link.
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
  // Starts at `step` instead of 0, to test what happens after 2^30 messages. Tests call it on both ends
  // before the first message.
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
  // Value of `head` at the last read.
  uint64_t released_ = 0;
};

// The receiving end of a Fifo. The rank's connection table owns the object, and one thread at a time may use
// it. No function fails or blocks.
template <uint64_t kCount>
class ReceiveEnd {
 public:
  ReceiveEnd() = default;
  ReceiveEnd(FifoCounters<kCount>* counters, Doorbell* sender, bool shaped)
      : counters_(counters), sender_(sender), shaped_(shaped) {}

  uint64_t step() const { return step_; }
  bool shaped() const { return shaped_; }
  // Returns whether the next message has been posted. A posted message may be read at once, unless the link
  // is emulated.
  bool Posted() {
    if (step_ < posted_) return true;
    posted_ = counters_->tail.load(std::memory_order_acquire);
    return step_ < posted_;
  }
  // Returns the time at which the next message may be read, in nanoseconds of CLOCK_MONOTONIC: kNotPosted
  // before the message is posted, 0 if the link is not emulated.
  int64_t Arrival() {
    if (!Posted()) return kNotPosted;
    return shaped_ ? counters_->arrival_ns[step_ % kCount].load(std::memory_order_relaxed) : 0;
  }
  // Gives the slot back to the sender and rings the sender's doorbell.
  void Release() {
    counters_->head.store(++step_, std::memory_order_release);
    sender_->Ring();
  }
  // Does as SendEnd::StartAt.
  void StartAt(uint64_t step) {
    step_ = posted_ = step;
    counters_->head.store(step, std::memory_order_release);
  }

 private:
  FifoCounters<kCount>* counters_ = nullptr;
  Doorbell* sender_ = nullptr;
  bool shaped_ = false;
  uint64_t step_ = 0;
  // Value of `tail` at the last read.
  uint64_t posted_ = 0;
};

// Both directions between this rank and one peer on one channel. Each FIFO lies in the segment of its
// receiver.
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
