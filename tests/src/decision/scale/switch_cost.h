// SPDX-License-Identifier: Apache-2.0
// Computes the cost of one switch of the table for a communicator of many ranks. It runs the shipped
// SwitchLeader and SwitchMembers in virtual time, on a network that loses nothing, with a leader that handles
// one message after the other.
#pragma once

#include <array>
#include <cstdint>

namespace dynamiccl::testing {

struct SwitchNetwork {
  int64_t one_way_ns = 50'000;
  // The leader's time for one message, sent or received: a system call and the message's authentication.
  int64_t leader_message_ns = 10'000;
  int64_t call_ns = 5'000'000;  // The time from one call of the communicator to the next.
};

// Counts single messages. A message to all ranks counts once per rank.
struct SwitchCost {
  std::array<uint64_t, 5> messages{};  // By SwitchKind.
  int attempts = 0;
  bool committed = false;
  uint64_t calls = 0;     // The number of calls from the request to the first call of the new version.
  int64_t ns = 0;         // The same span in time.
  int64_t waited_ns = 0;  // The time for which the slowest rank's call waited for the verdict.
  uint64_t total() const;
};

// Returns the cost of the first switch of a communicator, whose leader does not know the round trips yet, or
// of a later one.
SwitchCost CostOfSwitch(int n_ranks, const SwitchNetwork& network, bool first);

}  // namespace dynamiccl::testing
