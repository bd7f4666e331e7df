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

// A training step, from the first mark of the step to the first mark of the next one.
struct MarkedStep {
  uint64_t step = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

// The marked steps, without the first ones, which warm up. Programs mark every phase of a step, so a step
// begins with its first mark.
std::vector<MarkedStep> StepsOf(const StepMarks& marks) {
  std::vector<MarkedStep> steps;
  for (const auto& [step, marked_ns] : marks.firsts()) {
    if (!steps.empty()) steps.back().end_ns = marked_ns;
    steps.push_back({step, marked_ns, marked_ns});
  }
  if (!steps.empty()) steps.pop_back();  // the end of the last step is not known
  steps.erase(steps.begin(),
              steps.begin() + static_cast<std::ptrdiff_t>(std::min(kWarmUpSteps, steps.size())));
  return steps;
}

// The step of median length among those after the warm-up; nothing if there is none.
std::optional<StepLanes::Span> MedianStep(const StepMarks& marks) {
  std::vector<MarkedStep> steps = StepsOf(marks);
  if (steps.empty()) return {};
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
  std::nth_element(steps.begin(), middle, steps.end(), [](const MarkedStep& a, const MarkedStep& b) {
    return a.end_ns - a.begin_ns < b.end_ns - b.begin_ns;
  });
  return StepLanes::Span{middle->begin_ns, middle->end_ns,
                         fmt::format("Calls of step {}, of median length", middle->step)};
}

std::string TextOf(const TraceCall& call) {
  std::string text =
      fmt::format("{} of {}", Name(call.issued.call.collective), FormatBytes(call.issued.call.bytes));
  if (call.decision)
    text += fmt::format(", {} by {}", Name(call.decision->config), Name(call.decision->decided_by));
  return text;
}

std::string LaneName(const TraceSection& section) {
  return section.rank < 0 ? "process" : fmt::format("rank {}", section.rank);
}

}  // namespace

std::optional<double> MarkedStepMs(const StepMarks& marks) {
  std::vector<double> steps;
  for (const MarkedStep& step : StepsOf(marks)) steps.push_back(Milliseconds(step.end_ns - step.begin_ns));
  if (steps.empty()) return {};
  return Median(steps);
}

// A step lasts from the mark that says how many samples it has to the next such mark.
std::optional<SampleTimes> SampleTimesOf(const std::vector<SamplesView>& samples) {
  constexpr size_t kFewestSteps = 4, kPart = 4;
  if (samples.size() < kWarmUpSteps + kFewestSteps + 1) return {};
  const std::vector<SamplesView> marks(samples.begin() + kWarmUpSteps, samples.end());
  std::vector<double> each;
  for (size_t i = 0; i + 1 < marks.size(); ++i)
    each.push_back(Milliseconds(marks[i + 1].marked_ns - marks[i].marked_ns) /
                   static_cast<double>(marks[i].samples));
  const size_t part = std::max<size_t>(each.size() / kPart, 1);
  const std::span<const double> all(each);
  return SampleTimes{Median(all.first(part)), Median(all.last(part)), marks.front().samples,
                     marks[marks.size() - 2].samples};
}

BytesByTime::BytesByTime(const SectionScan& first) : begin_ns_(first.first_ns) {
  if (first.calls < 2) return;
  length_ns_ = TimeBetween(first.last_ns, begin_ns_);
  if (length_ns_ <= 0) return;
  over_.length_ms = Milliseconds(length_ns_);
  over_.parts.resize(kTimelineParts);
}

void BytesByTime::Take(const TraceCall& call) {
  if (over_.parts.empty()) return;
  const double share =
      static_cast<double>(TimeBetween(call.issued.issued_ns, begin_ns_)) / static_cast<double>(length_ns_);
  const auto part = static_cast<size_t>(std::clamp(share, 0.0, 1.0) * (kTimelineParts - 1));
  over_.parts[part][call.issued.call.collective] += call.issued.call.bytes;
}

StepLanes::StepLanes(const std::vector<SectionScan>& sections)
    : sections_(sections), drawn_(std::min(sections.size(), kShownLanes)) {
  for (size_t i = 0; i < drawn_.size(); ++i) clocks_.emplace_back(sections[i].description);
  if (!sections.empty() && sections.front().calls > 0) span_ = MedianStep(sections.front().steps);
}

// The middle of the run is not disturbed by the start and the end of the job.
void StepLanes::FindMiddle(const TraceCall& call) {
  const uint64_t calls = sections_.front().calls;
  const uint64_t count = std::min<uint64_t>(kWindowCalls, calls);
  const uint64_t first = (calls - count) / 2;
  const uint64_t place = seen_++;
  if (place == first) middle_begin_ns_ = call.issued.issued_ns;
  if (place != first + count - 1) return;
  span_ = {middle_begin_ns_, call.issued.issued_ns + std::max<int64_t>(call.issued.duration_ns, 1),
           fmt::format("{} calls from the middle of the run", count)};
}

void StepLanes::Draw(size_t section, const TraceCall& call) {
  if (section >= drawn_.size()) return;
  const int64_t begin_ns = clocks_.front().RealTime(span_->begin_ns);
  const int64_t at = clocks_[section].RealTime(call.issued.issued_ns);
  if (at < begin_ns || at >= clocks_.front().RealTime(span_->end_ns) || ++drawn_[section] > kMaxSlicesOfALane)
    return;
  const double length = call.issued.duration_ns < 0 ? -1 : Milliseconds(call.issued.duration_ns);
  slices_.push_back(
      {section, Milliseconds(TimeBetween(at, begin_ns)), length, call.issued.call.collective, TextOf(call)});
}

StepWindow StepLanes::Window() const {
  StepWindow window;
  if (!span_) return window;
  const SectionClock& axis = clocks_.front();
  const int64_t length = TimeBetween(axis.RealTime(span_->end_ns), axis.RealTime(span_->begin_ns));
  window.what = span_->what;
  window.length_ms = Milliseconds(std::max<int64_t>(length, 1));
  window.slices = slices_;
  for (size_t i = 0; i < drawn_.size(); ++i) window.lanes.push_back(LaneName(sections_[i].description));
  window.hidden_lanes = sections_.size() - window.lanes.size();
  return window;
}

}  // namespace dynamiccl
