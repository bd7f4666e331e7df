// SPDX-License-Identifier: Apache-2.0
// When a run's calls were issued: bytes over the whole run, and every call of one step on every rank.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/collective/collective.h"
#include "traces/format/trace.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {

// Bytes by collective of the first process, over its time from first call to last. Empty for fewer than two
// calls.
struct BytesOverTime {
  double length_ms = 0;
  std::vector<std::map<Collective, uint64_t>> parts;
};
// Number of columns: each is about four units wide in a chart of 460 units.
inline constexpr int kTimelineParts = 96;

// One call of one rank in a StepWindow.
struct CallSlice {
  // Index into StepWindow::lanes.
  size_t lane = 0;
  // Milliseconds since the window's begin.
  double start_ms = 0;
  // Negative: the call was not timed.
  double length_ms = -1;
  Collective collective = Collective::kAllReduce;
  std::string text;  // "AllReduce of 1M, Ring LL x2 by policy"
};

// The calls of one typical step on all ranks, on one time axis.
struct StepWindow {
  std::string what;  // "Calls of step 12, of median length", or "60 calls from the middle of the run"
  double length_ms = 0;
  // Names of the lanes: "rank 0".
  std::vector<std::string> lanes;
  std::vector<CallSlice> slices;
  // Ranks that are not shown, beyond kShownLanes.
  size_t hidden_lanes = 0;
};
// Ranks that are drawn; StepWindow::hidden_lanes counts the others.
inline constexpr size_t kShownLanes = 8;

// Returns the median of the marked steps after the first two, in milliseconds; nothing without marks.
std::optional<double> MarkedStepMs(const SectionCalls& calls);
// Sums the bytes of the first process by time and collective.
BytesOverTime BytesOverTimeOf(const SectionCalls& calls);
// What one sample of this rank takes, in milliseconds: a step's time over the samples that the program marked
// for it. Medians of the first and of the last quarter of those steps, after two that warm up.
struct SampleTimes {
  double first_ms = 0;
  double last_ms = 0;
  // Samples of the first and of the last of those steps.
  uint64_t first_samples = 0;
  uint64_t last_samples = 0;
};
// Nothing with fewer than four steps whose samples are marked.
std::optional<SampleTimes> SampleTimesOf(const SectionCalls& calls);

// The marked step of median length, after two steps that warm up; without marks, the calls in the middle of
// the run. The ranks' times are put on one axis as far as their clocks allow (traces/format/section_clock.h).
// Without calls there are no lanes. `first` holds the calls of the first section.
StepWindow StepWindowOf(const Trace& trace, const SectionCalls& first);

}  // namespace dynamiccl
