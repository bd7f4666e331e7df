// SPDX-License-Identifier: Apache-2.0
// Applies the events of one link in the order of the file. See link_timeline.h.
#include "src/transport/link_timeline.h"

#include <algorithm>

namespace dynamiccl {

bool LinkEvent::HoldsAt(const JobProgress& progress) const {
  const int64_t now = by_call ? progress.calls : progress.elapsed_ns;
  return begin <= now && now < end;
}

LinkShape LinkTimeline::At(const JobProgress& progress) const {
  LinkShape shape = base_;
  for (const LinkEvent& event : events_) {
    if (event.HoldsAt(progress)) event.change.ApplyTo(shape);
  }
  return shape;
}

int64_t LinkTimeline::NextChange(int64_t elapsed_ns) const {
  int64_t next = kNeverNs;
  for (const LinkEvent& event : events_) {
    if (event.by_call) continue;
    if (event.begin > elapsed_ns) next = std::min(next, event.begin);
    if (event.end > elapsed_ns) next = std::min(next, event.end);
  }
  return next;
}

bool LinkTimeline::depends_on_calls() const {
  return std::any_of(events_.begin(), events_.end(), [](const LinkEvent& event) { return event.by_call; });
}

}  // namespace dynamiccl
