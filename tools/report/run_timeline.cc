// SPDX-License-Identifier: Apache-2.0
// Picks a typical training step and puts the calls of all ranks on its time axis.
#include "tools/report/run_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

#include "src/base/statistics.h"
#include "src/collective/size_class.h"
#include "tools/report/choice_comparison.h"
#include "traces/format/section_clock.h"

namespace dynamiccl {
namespace {

// Number of marked steps that are left out at the start of a job. They are slower, because memory is
// allocated and connections are made.
constexpr size_t kWarmUpSteps = 2;
// Number of calls that are shown of a run without marked steps.
constexpr size_t kWindowCalls = 60;
// The most calls of one rank that are drawn. In the width of a chart, more could not be distinguished.
constexpr size_t kMaxSlicesOfALane = 400;

double Milliseconds(int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) * 1e-6;
}

// The stretch of a run that is shown.
struct Span {
  int64_t begin_ns = 0;  // on the first section's clock
  int64_t end_ns = 0;
  std::string what;
};

// A training step, from the first mark of the step to the first mark of the next one.
struct MarkedStep {
  uint64_t step = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

// The marked steps, without the first ones, which warm up. Programs mark every phase of a step, so a step
// begins with its first mark.
std::vector<MarkedStep> StepsOf(const SectionCalls& calls) {
  std::map<uint64_t, int64_t> first;
  for (const StepView& mark : calls.steps) first.emplace(mark.step, mark.marked_ns);
  std::vector<MarkedStep> steps;
  for (const auto& [step, marked_ns] : first) {
    if (!steps.empty()) steps.back().end_ns = marked_ns;
    steps.push_back({step, marked_ns, marked_ns});
  }
  if (!steps.empty()) steps.pop_back();  // the end of the last step is not known
  steps.erase(steps.begin(),
              steps.begin() + static_cast<std::ptrdiff_t>(std::min(kWarmUpSteps, steps.size())));
  return steps;
}

// The step of median length among those after the warm-up; nothing if there is none.
std::optional<Span> MedianStep(const SectionCalls& calls) {
  std::vector<MarkedStep> steps = StepsOf(calls);
  if (steps.empty()) return {};
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
  std::nth_element(steps.begin(), middle, steps.end(), [](const MarkedStep& a, const MarkedStep& b) {
    return a.end_ns - a.begin_ns < b.end_ns - b.begin_ns;
  });
  return Span{middle->begin_ns, middle->end_ns,
              fmt::format("Calls of step {}, of median length", middle->step)};
}

// A stretch of calls in the middle of the run, which the start and the end of the job do not disturb. The run
// must have a call.
Span MiddleCalls(const SectionCalls& calls) {
  const size_t count = std::min(kWindowCalls, calls.calls.size());
  const size_t first = (calls.calls.size() - count) / 2;
  const IssuedCall& begin = calls.calls[first].issued;
  const IssuedCall& last = calls.calls[first + count - 1].issued;
  return {begin.issued_ns, last.issued_ns + std::max<int64_t>(last.duration_ns, 1),
          fmt::format("{} calls from the middle of the run", count)};
}

// The stretch that is shown. The run must have a call.
Span SpanOf(const SectionCalls& calls) {
  const std::optional<Span> step = MedianStep(calls);
  return step ? *step : MiddleCalls(calls);
}

std::string TextOf(const TraceCall& call) {
  std::string text =
      fmt::format("{} of {}", Name(call.issued.call.collective), FormatBytes(call.issued.call.bytes));
  if (call.decision)
    text += fmt::format(", {} by {}", Name(call.decision->config), Name(call.decision->decided_by));
  return text;
}

// Adds a lane to the chart with the calls that one rank issued in [begin_ns, end_ns), in real time.
void AddLane(const TraceSection& section, const SectionCalls& calls, int64_t begin_ns, int64_t end_ns,
             StepWindow& window) {
  const SectionClock clock(section);
  size_t slices = 0;
  for (const TraceCall& call : calls.calls) {
    const int64_t at = clock.RealTime(call.issued.issued_ns);
    if (at < begin_ns || at >= end_ns || ++slices > kMaxSlicesOfALane) continue;
    const double length = call.issued.duration_ns < 0 ? -1 : Milliseconds(call.issued.duration_ns);
    window.slices.push_back({window.lanes.size(), Milliseconds(TimeBetween(at, begin_ns)), length,
                             call.issued.call.collective, TextOf(call)});
  }
  window.lanes.push_back(section.rank < 0 ? "process" : fmt::format("rank {}", section.rank));
}

}  // namespace

std::optional<double> MarkedStepMs(const SectionCalls& calls) {
  std::vector<double> steps;
  for (const MarkedStep& step : StepsOf(calls)) steps.push_back(Milliseconds(step.end_ns - step.begin_ns));
  if (steps.empty()) return {};
  return Median(steps);
}

// A step lasts from the mark that says how many samples it has to the next such mark.
std::optional<SampleTimes> SampleTimesOf(const SectionCalls& calls) {
  constexpr size_t kFewestSteps = 4, kPart = 4;
  if (calls.samples.size() < kWarmUpSteps + kFewestSteps + 1) return {};
  const std::vector<SamplesView> marks(calls.samples.begin() + kWarmUpSteps, calls.samples.end());
  std::vector<double> each;
  for (size_t i = 0; i + 1 < marks.size(); ++i)
    each.push_back(Milliseconds(marks[i + 1].marked_ns - marks[i].marked_ns) /
                   static_cast<double>(marks[i].samples));
  const size_t part = std::max<size_t>(each.size() / kPart, 1);
  const std::span<const double> all(each);
  return SampleTimes{Median(all.first(part)), Median(all.last(part)), marks.front().samples,
                     marks[marks.size() - 2].samples};
}

BytesOverTime BytesOverTimeOf(const SectionCalls& calls) {
  BytesOverTime over;
  if (calls.calls.size() < 2) return over;
  const int64_t begin = calls.calls.front().issued.issued_ns;
  const int64_t length = TimeBetween(calls.calls.back().issued.issued_ns, begin);
  if (length <= 0) return over;
  over.length_ms = Milliseconds(length);
  over.parts.resize(kTimelineParts);
  for (const TraceCall& call : calls.calls) {
    const double share =
        static_cast<double>(TimeBetween(call.issued.issued_ns, begin)) / static_cast<double>(length);
    const auto part = static_cast<size_t>(std::clamp(share, 0.0, 1.0) * (kTimelineParts - 1));
    over.parts[part][call.issued.call.collective] += call.issued.call.bytes;
  }
  return over;
}

std::optional<StepSpan> StepSpanOf(const TraceSection& section, const SectionCalls& calls) {
  if (calls.calls.empty()) return {};
  const Span span = SpanOf(calls);
  const SectionClock clock(section);
  return StepSpan{clock.RealTime(span.begin_ns), clock.RealTime(span.end_ns)};
}

StepWindow StepWindowOf(const Trace& trace, const SectionCalls& first) {
  StepWindow window;
  if (first.calls.empty()) return window;
  const Span span = SpanOf(first);
  const SectionClock clock(trace.sections.front());
  const int64_t begin = clock.RealTime(span.begin_ns);
  const int64_t end = clock.RealTime(span.end_ns);
  window.what = span.what;
  window.length_ms = Milliseconds(std::max<int64_t>(TimeBetween(end, begin), 1));
  for (size_t i = 0; i < trace.sections.size() && i < kShownLanes; ++i) {
    const TraceSection& section = trace.sections[i];
    AddLane(section, i == 0 ? first : CallsOf(section), begin, end, window);
  }
  window.hidden_lanes = trace.sections.size() - window.lanes.size();
  return window;
}

}  // namespace dynamiccl
