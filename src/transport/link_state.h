// SPDX-License-Identifier: Apache-2.0
// The state of an emulated link that all ranks share: until when the link is busy, how much it has carried,
// and the change that an operator ordered. The state lies in the segment of rank 0 and starts as zeros.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "src/transport/link_shape.h"

namespace dynamiccl {

// A change that an operator ordered while the job runs, readable without a lock. The only writer is the link
// server in the process of rank 0; any number of other processes may read. If the writer dies while writing,
// readers keep the order that they read before.
class OrderedChange {
 public:
  struct Order {
    LinkChange change;
    int64_t until_ns = 0;  // nanoseconds of CLOCK_MONOTONIC; kNeverNs: until reset
  };

  // The version grows with every order. It is odd while an order is being written.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }
  // Returns the order in force. Returns nothing while an order is being written; the caller then reads again
  // at its next message.
  std::optional<Order> Read() const;
  // Replaces the order. Only the writer may call it.
  void Write(const Order& order);

 private:
  // The words are the bits of `fields`, of `until_ns` and of each value of the table.
  std::array<std::atomic<uint64_t>, 2 + kLinkFields> words_;
  std::atomic<uint64_t> version_;
};

// One direction of a rail. All senders on it queue behind each other: a message starts no earlier than
// `busy_until_ns` (nanoseconds of CLOCK_MONOTONIC).
struct alignas(64) LinkState {
  std::atomic<int64_t> busy_until_ns;
  std::atomic<uint64_t> messages;
  std::atomic<uint64_t> bytes;
  alignas(64) OrderedChange ordered;
};

// The clock from which events of the topology count; one for all links of a job.
struct alignas(64) JobClock {
  std::atomic<int64_t> epoch_ns;  // CLOCK_MONOTONIC when the first rank made its links
  std::atomic<int64_t> calls;     // the largest number of a collective launch that any rank has begun
};

}  // namespace dynamiccl
