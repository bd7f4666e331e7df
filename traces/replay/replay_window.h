// SPDX-License-Identifier: Apache-2.0
// Selects the calls of a trace that a replay issues. A call is included on all ranks or on none, because the
// ranks would otherwise wait for each other forever.
#pragma once

#include <cstdint>
#include <limits>
#include <set>
#include <tuple>
#include <vector>

#include "traces/format/trace.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {

// Three intervals; a call must lie in all of them.
struct ReplayWindow {
  uint64_t first = 0;  // index of the first call in order of issue
  uint64_t count = std::numeric_limits<uint64_t>::max();
  // Training steps as the program marked them; -1 stands for the time before the first mark. last_step is
  // inclusive.
  int64_t first_step = std::numeric_limits<int64_t>::min();
  int64_t last_step = std::numeric_limits<int64_t>::max();
  // Nanoseconds since the trace's first call, with the ranks' clocks aligned. end_ns is exclusive.
  int64_t begin_ns = std::numeric_limits<int64_t>::min();
  int64_t end_ns = std::numeric_limits<int64_t>::max();

  bool whole() const { return *this == ReplayWindow{}; }
  friend bool operator==(const ReplayWindow&, const ReplayWindow&) = default;
};

// The calls of a trace that lie in a window. It is computed from the whole trace, so every rank gets the same
// result.
class WindowedCalls {
 public:
  // `sections` are the results of CallsOf for the trace's sections. When several ranks issued a call, the
  // first rank's index, step and time decide.
  WindowedCalls(const Trace& trace, const std::vector<SectionCalls>& sections, const ReplayWindow& window);

  bool Holds(const TraceCall& call) const;

 private:
  // Communicator, call number, index in the group. Sends and receives differ between ranks, so all of them
  // between two collectives share one key.
  using Key = std::tuple<uint64_t, uint64_t, int32_t>;
  static Key KeyOf(const TraceCall& call);

  bool whole_;
  std::set<Key> in_;
};

}  // namespace dynamiccl
