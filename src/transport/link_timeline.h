// SPDX-License-Identifier: Apache-2.0
// How a link's shape follows from the events of a topology file. It is a pure function of the time since the
// links were made and of the call number, so every rank computes the same shape and an experiment can be
// repeated.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "src/transport/link_shape.h"

namespace dynamiccl {

// The two clocks by which events start and end.
struct JobProgress {
  int64_t elapsed_ns = 0;  // nanoseconds since the links were made
  int64_t calls = 0;       // number of collective launches begun; 1 during the first
};

inline constexpr int64_t kNeverNs = std::numeric_limits<int64_t>::max();

// A change of links that starts at a time or at a call, for a while or for good.
struct LinkEvent {
  bool by_call = false;  // unit of `begin` and `end`: calls if true, nanoseconds if not
  int64_t begin = 0;
  int64_t end = kNeverNs;  // excluded
  LinkTarget target;
  LinkChange change;

  bool HoldsAt(const JobProgress& progress) const;
  friend bool operator==(const LinkEvent&, const LinkEvent&) = default;
};

// All events of one link, over its shape without events. Where several events hold, the later one in the file
// wins. Immutable, so any thread may use it.
class LinkTimeline {
 public:
  LinkTimeline(const LinkShape& base, std::vector<LinkEvent> events)
      : base_(base), events_(std::move(events)) {}

  LinkShape At(const JobProgress& progress) const;
  // Nanoseconds after the links were made at which the shape may next change by time alone; kNeverNs if it
  // never does.
  int64_t NextChange(int64_t elapsed_ns) const;
  // Returns whether any event starts or ends at a call.
  bool depends_on_calls() const;

 private:
  LinkShape base_;
  std::vector<LinkEvent> events_;
};

}  // namespace dynamiccl
