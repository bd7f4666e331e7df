// SPDX-License-Identifier: Apache-2.0
// Carries the control messages of a simulated communicator. It delays, loses, repeats and reorders them.
#pragma once

#include <algorithm>
#include <vector>

#include "tests/src/decision/switching/simulated_faults.h"

namespace dynamiccl::testing {

template <class Message>
struct SimulatedEvent {
  enum class Kind : uint8_t { kMessage, kAnswerDue, kRankLost, kRankBack };
  int64_t due_ns = 0;
  uint64_t order = 0;  // The order of sending, which decides between equal times.
  Kind kind = Kind::kMessage;
  int to = 0;
  int from = 0;  // The sender of a message, or the rank that is lost or back.
  Message message;
};

template <class Message>
class SimulatedNetwork {
 public:
  using Event = SimulatedEvent<Message>;

  SimulatedNetwork(const SimulatedFaults& faults, SeededRandom& random) : faults_(faults), random_(random) {}

  void Send(int64_t now_ns, int from, int to, const Message& message) {
    Event event{now_ns, 0, Event::Kind::kMessage, to, from, message};
    if (from == to) return Schedule(event);  // This message stays within the leader's process.
    if (random_.Chance(faults_.lost) || !Reachable(now_ns, from) || !Reachable(now_ns, to)) {
      ++lost_;
      return;
    }
    event.due_ns = now_ns + Delay();
    Schedule(event);
    while (random_.Chance(faults_.duplicated)) {
      event.due_ns = now_ns + Delay();
      Schedule(event);
    }
  }
  // Schedules an event that no fault can change.
  void Schedule(Event event) {
    event.order = order_++;
    events_.push_back(event);
    std::push_heap(events_.begin(), events_.end(), Later);
  }
  int64_t next_ns() const { return events_.empty() ? kNeverNs : events_.front().due_ns; }
  Event Take() {
    std::pop_heap(events_.begin(), events_.end(), Later);
    const Event event = events_.back();
    events_.pop_back();
    return event;
  }
  bool Reachable(int64_t now_ns, int rank) const {
    const auto index = static_cast<size_t>(rank);
    return now_ns < faults_.unreachable_from[index] || now_ns >= faults_.unreachable_until[index];
  }
  uint64_t lost() const { return lost_; }

 private:
  static bool Later(const Event& a, const Event& b) {
    return a.due_ns != b.due_ns ? a.due_ns > b.due_ns : a.order > b.order;
  }
  int64_t Delay() {
    const int64_t delay = random_.Waiting(faults_.delay_ns);
    return random_.Chance(faults_.much_later) ? delay * 50 : delay;
  }

  const SimulatedFaults& faults_;
  SeededRandom& random_;
  std::vector<Event> events_;  // A heap with the earliest event in front.
  uint64_t order_ = 0;
  uint64_t lost_ = 0;
};

}  // namespace dynamiccl::testing
