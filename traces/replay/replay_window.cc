// SPDX-License-Identifier: Apache-2.0
// If several ranks have a call, the first of these ranks decides for all whether the call is in the window.
#include "traces/replay/replay_window.h"

#include <algorithm>

#include "traces/format/section_clock.h"

namespace dynamiccl {

WindowedCalls::WindowedCalls(const Trace& trace, const std::vector<SectionCalls>& sections,
                             const ReplayWindow& window)
    : whole_(window.whole()) {
  if (whole_) return;
  int64_t start_ns = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < sections.size(); ++i) {
    const SectionClock clock(trace.sections[i]);
    if (!sections[i].calls.empty())
      start_ns = std::min(start_ns, clock.RealTime(sections[i].calls.front().issued.issued_ns));
  }
  std::set<Key> seen;
  for (size_t i = 0; i < sections.size(); ++i) {
    const SectionClock clock(trace.sections[i]);
    for (uint64_t index = 0; index < sections[i].calls.size(); ++index) {
      const TraceCall& call = sections[i].calls[index];
      const Key key = KeyOf(call);
      if (!seen.insert(key).second) continue;
      const int64_t at = TimeBetween(clock.RealTime(call.issued.issued_ns), start_ns);
      const bool in = index >= window.first && index - window.first < window.count &&
                      call.step >= window.first_step && call.step <= window.last_step &&
                      at >= window.begin_ns && at < window.end_ns;
      if (in) in_.insert(key);
    }
  }
}

bool WindowedCalls::Holds(const TraceCall& call) const {
  return whole_ || in_.contains(KeyOf(call));
}

WindowedCalls::Key WindowedCalls::KeyOf(const TraceCall& call) {
  const CollectiveCall& c = call.issued.call;
  const bool collective = c.collective < Collective::kSendRecv;
  return {c.communicator, c.call_number, collective ? int32_t{c.index_in_group} : -1};
}

}  // namespace dynamiccl
