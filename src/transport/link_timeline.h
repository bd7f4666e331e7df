// SPDX-License-Identifier: Apache-2.0
// Computes the shape of a link from the events of a topology file. The shape is a pure function of the time
// since the links were made and of the call number. So every rank computes the same shape, and an experiment
// can be repeated.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "src/transport/link_shape.h"

namespace dynamiccl {

// Says how far a job has come: the time and the call number by which events start and end.
struct JobProgress {
  int64_t elapsed_ns = 0;  // nanoseconds since the links were made
  int64_t calls = 0;       // number of collective launches begun; 1 during the first
};

inline constexpr int64_t kNeverNs = std::numeric_limits<int64_t>::max();

// A change of links that starts at a time or at a call number, and lasts for a while or for good.
struct LinkEvent {
  bool by_call = false;  // unit of `begin` and `end`: calls if true, nanoseconds if not
  int64_t begin = 0;
  int64_t end = kNeverNs;  // excluded
  LinkTarget target;
  LinkChange change;

  bool HoldsAt(const JobProgress& progress) const;
  friend bool operator==(const LinkEvent&, const LinkEvent&) = default;
};

// The shape of one link without events, and all events that change this shape. Where several events are in
// force, the one that comes later in the file wins. The object is immutable, so any thread may use it.
class LinkTimeline {
 public:
  LinkTimeline(const LinkShape& base, std::vector<LinkEvent> events)
      : base_(base), events_(std::move(events)) {}

  LinkShape At(const JobProgress& progress) const;
  // Returns the time, in nanoseconds after the links were made, at which the clock may next change the shape.
  // Returns kNeverNs if only calls can change it from now on.
  int64_t NextChange(int64_t elapsed_ns) const;
  // Returns whether any event starts or ends at a call number.
  bool depends_on_calls() const;

 private:
  LinkShape base_;
  std::vector<LinkEvent> events_;
};

}  // namespace dynamiccl
