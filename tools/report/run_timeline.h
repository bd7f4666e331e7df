// SPDX-License-Identifier: Apache-2.0
// When the calls of a run were issued: bytes over the whole run, and every call of one training step on every
// rank.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/collective/collective.h"
#include "tools/report/section_scan.h"
#include "traces/format/section_clock.h"
#include "traces/format/trace.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {

// Bytes of each collective over the time of the run, from the first call of the first process to its last
// call. Empty if there are fewer than two calls.
struct BytesOverTime {
  double length_ms = 0;
  std::vector<std::map<Collective, uint64_t>> parts;
};
// Number of columns in the chart of bytes over time. Each is about four units wide in a chart of 460 units.
inline constexpr int kTimelineParts = 96;

// One call of one rank in the chart of a training step.
struct CallSlice {
  // Index into StepWindow::lanes.
  size_t lane = 0;
  // Milliseconds from the beginning of the shown stretch to the start of the call.
  double start_ms = 0;
  // Duration of the call in milliseconds; negative: the call was not timed.
  double length_ms = -1;
  Collective collective = Collective::kAllReduce;
  std::string text;  // "AllReduce of 1M, Ring LL x2 by policy"
};

// The calls of all ranks in one typical training step, on one time axis.
struct StepWindow {
  std::string what;  // "Calls of step 12, of median length", or "60 calls from the middle of the run"
  double length_ms = 0;
  // Names of the lanes, one for each rank: "rank 0".
  std::vector<std::string> lanes;
  std::vector<CallSlice> slices;
  // Number of ranks that are not shown, because there are more than kShownLanes.
  size_t hidden_lanes = 0;
};
// The most ranks that the chart shows. StepWindow::hidden_lanes counts the others.
inline constexpr size_t kShownLanes = 8;

// Returns the median duration of the marked steps after the first two, in milliseconds; nothing without
// marks.
std::optional<double> MarkedStepMs(const StepMarks& marks);

// Sums the bytes of the first process by time and collective.
class BytesByTime {
 public:
  explicit BytesByTime(const SectionScan& first);
  void Take(const TraceCall& call);
  const BytesOverTime& over_time() const { return over_; }

 private:
  int64_t begin_ns_ = 0;
  int64_t length_ns_ = 0;
  BytesOverTime over_;
};

// Milliseconds that this rank takes for one training sample: a step's time divided by the number of samples
// that the program marked for the step. The first two steps do not count. Of the others, the medians of the
// first and of the last quarter are given.
struct SampleTimes {
  double first_ms = 0;
  double last_ms = 0;
  // Number of samples of the first step that counts, and of the last one.
  uint64_t first_samples = 0;
  uint64_t last_samples = 0;
};
// Returns the time for one training sample. Nothing if fewer than four steps have marked samples.
std::optional<SampleTimes> SampleTimesOf(const std::vector<SamplesView>& samples);

// Collects what the chart of a step shows: the marked step of median length, not counting the first two
// steps. Without marks, it shows the calls in the middle of the run, which is found only after the first
// section's calls have passed. The ranks' times are put on one axis as far as their clocks allow
// (traces/format/section_clock.h).
class StepLanes {
 public:
  // `sections` are all sections of the trace and must outlive this object.
  explicit StepLanes(const std::vector<SectionScan>& sections);
  // True if the stretch is known, so that calls may be drawn.
  bool span_known() const { return span_.has_value(); }
  // Takes the calls of the first section in order, to find the middle of the run.
  void FindMiddle(const TraceCall& call);
  // Draws a call. The calls come section by section, those of a section in order. Calls of a section that is
  // not shown, or outside the stretch, are passed over.
  void Draw(size_t section, const TraceCall& call);
  // Returns the chart; one without lanes if no calls were issued.
  StepWindow Window() const;

  // The stretch, on the first section's clock.
  struct Span {
    int64_t begin_ns = 0;
    int64_t end_ns = 0;
    std::string what;
  };

 private:
  const std::vector<SectionScan>& sections_;
  std::vector<SectionClock> clocks_;  // of the sections that are shown
  std::optional<Span> span_;
  uint64_t seen_ = 0;            // calls of the first section that FindMiddle took
  int64_t middle_begin_ns_ = 0;  // issue of the first call of the middle
  std::vector<size_t> drawn_;    // calls of each section inside the stretch
  std::vector<CallSlice> slices_;
};

}  // namespace dynamiccl
