// SPDX-License-Identifier: Apache-2.0
#include "tests/src/decision/switching/simulated_network.h"

#include <algorithm>

namespace dynamiccl::testing {
namespace {

bool Later(const SimulatedEvent& a, const SimulatedEvent& b) {
  return a.due_ns != b.due_ns ? a.due_ns > b.due_ns : a.order > b.order;
}

}  // namespace

void SimulatedNetwork::Schedule(SimulatedEvent event) {
  event.order = order_++;
  events_.push_back(event);
  std::push_heap(events_.begin(), events_.end(), Later);
}

SimulatedEvent SimulatedNetwork::Take() {
  std::pop_heap(events_.begin(), events_.end(), Later);
  const SimulatedEvent event = events_.back();
  events_.pop_back();
  return event;
}

bool SimulatedNetwork::Reachable(int64_t now_ns, int rank) const {
  const auto index = static_cast<size_t>(rank);
  return now_ns < faults_.unreachable_from[index] || now_ns >= faults_.unreachable_until[index];
}

int64_t SimulatedNetwork::Delay() {
  const int64_t delay = random_.Waiting(faults_.delay_ns);
  return random_.Chance(faults_.much_later) ? delay * 50 : delay;
}

void SimulatedNetwork::Send(int64_t now_ns, int from, int to, const SwitchMessage& message) {
  SimulatedEvent event{now_ns, 0, SimulatedEvent::Kind::kMessage, to, from, message};
  if (from == to) return Schedule(event);  // within the leader's process
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

}  // namespace dynamiccl::testing
