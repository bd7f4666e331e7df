// SPDX-License-Identifier: Apache-2.0
// How a link's shape follows from the topology's events: a pure function of the time since init and of the
// call number, so that every rank computes the same and an experiment repeats.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "src/transport/link_shape.h"

namespace dynamiccl {

// Where a job stands.
struct JobProgress {
  int64_t elapsed_ns = 0;  // since the links were made
  int64_t calls = 0;       // collective launches begun, 1 for the first
};

inline constexpr int64_t kNeverNs = std::numeric_limits<int64_t>::max();

// A change of links at a time or at a call, for a while or for good.
struct LinkEvent {
  bool by_call = false;  // unit of `begin` and `end`: calls; else nanoseconds
  int64_t begin = 0;
  int64_t end = kNeverNs;  // excluded
  LinkTarget target;
  LinkChange change;

  bool HoldsAt(const JobProgress& progress) const;
  friend bool operator==(const LinkEvent&, const LinkEvent&) = default;
};

// The events of one link, in the order of the file: of those that hold, a later one wins.
class LinkTimeline {
 public:
  LinkTimeline(const LinkShape& base, std::vector<LinkEvent> events)
      : base_(base), events_(std::move(events)) {}

  LinkShape At(const JobProgress& progress) const;
  // When the shape may next change by time alone, in elapsed nanoseconds; kNeverNs.
  int64_t NextChange(int64_t elapsed_ns) const;
  bool depends_on_calls() const;

 private:
  LinkShape base_;
  std::vector<LinkEvent> events_;
};

}  // namespace dynamiccl
