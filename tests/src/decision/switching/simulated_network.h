// SPDX-License-Identifier: Apache-2.0
// The control messages of a simulated communicator that are on their way: late, lost, twice, out of order.
#pragma once

#include <vector>

#include "src/decision/switching/switch_message.h"
#include "tests/src/decision/switching/simulated_faults.h"

namespace dynamiccl::testing {

struct SimulatedEvent {
  enum class Kind : uint8_t { kMessage, kAnswerDue, kRankLost };
  int64_t due_ns = 0;
  uint64_t order = 0;  // of sending: decides between equal times
  Kind kind = Kind::kMessage;
  int to = 0;
  int from = 0;  // of a message; or the rank that is lost
  SwitchMessage message;
};

class SimulatedNetwork {
 public:
  SimulatedNetwork(const SimulatedFaults& faults, SeededRandom& random) : faults_(faults), random_(random) {}

  void Send(int64_t now_ns, int from, int to, const SwitchMessage& message);
  // Past all faults.
  void Schedule(SimulatedEvent event);
  int64_t next_ns() const { return events_.empty() ? kNeverNs : events_.front().due_ns; }
  SimulatedEvent Take();
  bool Reachable(int64_t now_ns, int rank) const;
  uint64_t lost() const { return lost_; }

 private:
  int64_t Delay();

  const SimulatedFaults& faults_;
  SeededRandom& random_;
  std::vector<SimulatedEvent> events_;  // a heap, the earliest in front
  uint64_t order_ = 0;
  uint64_t lost_ = 0;
};

}  // namespace dynamiccl::testing
