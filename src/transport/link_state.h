// SPDX-License-Identifier: Apache-2.0
// What the ranks share of an emulated link: until when it is booked, how many messages it has carried, and
// the change that an operator has ordered. Lives in shared memory, zero-initialised.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "src/transport/link_shape.h"

namespace dynamiccl {

// A change ordered while the job runs. One writer (the link server of rank 0's process), many readers; a
// writer that dies in the middle leaves readers with what they read before.
class OrderedChange {
 public:
  struct Order {
    LinkChange change;
    int64_t until_ns = 0;  // CLOCK_MONOTONIC; kNeverNs: until reset
  };

  // Changes with every order; even when none is being written.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }
  // Nothing while an order is being written: look again at the next message.
  std::optional<Order> Read() const;
  // The writer alone.
  void Write(const Order& order);

 private:
  // Words: fields, until, then the values.
  std::array<std::atomic<uint64_t>, 2 + kLinkFields> words_;
  std::atomic<uint64_t> version_;
};

// All senders over one direction of a rail queue behind each other.
struct alignas(64) LinkState {
  std::atomic<int64_t> busy_until_ns;
  std::atomic<uint64_t> messages;
  std::atomic<uint64_t> bytes;
  alignas(64) OrderedChange ordered;
};

// One for all links of a job.
struct alignas(64) JobClock {
  std::atomic<int64_t> epoch_ns;  // CLOCK_MONOTONIC when the first rank made its links
  std::atomic<int64_t> calls;     // the largest number of a collective launch that a rank has begun
};

}  // namespace dynamiccl
