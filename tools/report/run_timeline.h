// SPDX-License-Identifier: Apache-2.0
// When a run's calls were: bytes over the whole run, and every call of one step on every rank.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/collective/collective.h"
#include "traces/format/trace.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {

// Of the first process, in equal parts of the time from its first call to its last.
struct BytesOverTime {
  double length_ms = 0;
  std::vector<std::map<Collective, uint64_t>> parts;
};
inline constexpr int kTimelineParts = 96;

struct CallSlice {
  size_t lane = 0;  // into StepWindow::lanes
  double start_ms = 0;
  double length_ms = -1;  // negative: the call was not timed
  Collective collective = Collective::kAllReduce;
  std::string text;  // "AllReduce of 1M, Ring LL x2 by policy"
};

struct StepWindow {
  std::string what;  // "Calls of step 12, of median length", or "60 calls from the middle of the run"
  double length_ms = 0;
  std::vector<std::string> lanes;  // "rank 0"
  std::vector<CallSlice> slices;
  size_t hidden_lanes = 0;  // ranks beyond kShownLanes
};
inline constexpr size_t kShownLanes = 8;

// How fast a run went, start and end left out.
struct StepPace {
  double milliseconds = 0;
  bool marked = false;  // of a step that the program marked; else from the first call of the run to its last
};

// With marks the median of the steps after the first two; an error without two calls.
Result<StepPace> PaceOfSection(const SectionCalls& calls);
// Of the first section.
Result<StepPace> PaceOf(const Trace& trace);

BytesOverTime BytesOverTimeOf(const SectionCalls& calls);
// The step of median length that the program marked, after two that warm up; without marks the calls in the
// middle. Ranks are put on one axis as far as their clocks allow (traces/format/section_clock.h). No lanes
// without calls. `first`: the calls of the first section.
StepWindow StepWindowOf(const Trace& trace, const SectionCalls& first);

}  // namespace dynamiccl
