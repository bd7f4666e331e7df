// SPDX-License-Identifier: Apache-2.0
// The state of an emulated link that all ranks share: until when it is busy, how much it has carried, and the
// change that an operator ordered. It lies in the segment of rank 0 and starts as zeros.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "src/transport/link_shape.h"

namespace dynamiccl {

// A change that an operator ordered while the job runs, readable without a lock. There is one writer, the
// link server in the process of rank 0, and any number of readers in other processes. If the writer dies in
// the middle, readers keep the order they read before.
class OrderedChange {
 public:
  struct Order {
    LinkChange change;
    int64_t until_ns = 0;  // nanoseconds of CLOCK_MONOTONIC; kNeverNs: until reset
  };

  // Grows with every order; odd while one is being written.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }
  // The order in force; nothing while one is being written, in which case the caller looks again at its next
  // message.
  std::optional<Order> Read() const;
  // Replaces the order. Only the writer may call it.
  void Write(const Order& order);

 private:
  // The bits of `fields`, of `until_ns` and of each value of the table.
  std::array<std::atomic<uint64_t>, 2 + kLinkFields> words_;
  std::atomic<uint64_t> version_;
};

// One direction of a rail. All senders over it queue behind each other at `busy_until_ns` (CLOCK_MONOTONIC).
struct alignas(64) LinkState {
  std::atomic<int64_t> busy_until_ns;
  std::atomic<uint64_t> messages;
  std::atomic<uint64_t> bytes;
  alignas(64) OrderedChange ordered;
};

// One clock for all links of a job, from which events count.
struct alignas(64) JobClock {
  std::atomic<int64_t> epoch_ns;  // CLOCK_MONOTONIC when the first rank made its links
  std::atomic<int64_t> calls;     // the largest number of a collective launch that any rank has begun
};

}  // namespace dynamiccl
