// SPDX-License-Identifier: Apache-2.0
// Which calls of a trace a replay issues. A call is in or out on all ranks alike, or they would wait for each
// other.
#pragma once

#include <cstdint>
#include <limits>
#include <set>
#include <tuple>
#include <vector>

#include "traces/format/trace.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {

// A call must lie in all three.
struct ReplayWindow {
  uint64_t first = 0;  // index of the first call in order of issue
  uint64_t count = std::numeric_limits<uint64_t>::max();
  int64_t first_step =
      std::numeric_limits<int64_t>::min();  // training steps as marked; -1: before the first mark
  int64_t last_step = std::numeric_limits<int64_t>::max();  // inclusive
  int64_t begin_ns = std::numeric_limits<int64_t>::min();   // since the trace's first call, ranks aligned
  int64_t end_ns = std::numeric_limits<int64_t>::max();     // exclusive

  bool whole() const { return *this == ReplayWindow{}; }
  friend bool operator==(const ReplayWindow&, const ReplayWindow&) = default;
};

class WindowedCalls {
 public:
  // `sections` are CallsOf the trace's sections. Of a call that several ranks issued, the first rank's index,
  // step and time count.
  WindowedCalls(const Trace& trace, const std::vector<SectionCalls>& sections, const ReplayWindow& window);

  bool Holds(const TraceCall& call) const;

 private:
  // Communicator, call number, index in the group; Sends and Receives, which differ between ranks, have one
  // key for all between two collectives.
  using Key = std::tuple<uint64_t, uint64_t, int32_t>;
  static Key KeyOf(const TraceCall& call);

  bool whole_;
  std::set<Key> in_;
};

}  // namespace dynamiccl
