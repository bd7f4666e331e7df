// SPDX-License-Identifier: Apache-2.0
#include "tools/report/step_pace.h"

#include <map>
#include <vector>

#include "tools/report/timing.h"

namespace dynamiccl {
namespace {

constexpr size_t kWarmUpSteps = 2;

// When each step was first marked; programs mark every phase of it.
std::vector<int64_t> Beginnings(const std::vector<StepView>& marks) {
  std::map<uint64_t, int64_t> first;
  for (const StepView& mark : marks) first.emplace(mark.step, mark.marked_ns);
  std::vector<int64_t> beginnings;
  for (const auto& [step, marked_ns] : first) beginnings.push_back(marked_ns);
  return beginnings;
}

double Milliseconds(int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) * 1e-6;
}

}  // namespace

Result<StepPace> PaceOfSection(const SectionCalls& calls) {
  const std::vector<int64_t> beginnings = Beginnings(calls.steps);
  std::vector<double> steps;
  for (size_t i = kWarmUpSteps; i + 1 < beginnings.size(); ++i)
    steps.push_back(Milliseconds(beginnings[i + 1] - beginnings[i]));
  if (!steps.empty()) return StepPace{Summarize(std::move(steps)).median, true};
  if (calls.calls.size() < 2) return MakeError(ErrorKind::kNotFound, "the trace holds fewer than two calls");
  return StepPace{Milliseconds(calls.calls.back().issued.issued_ns - calls.calls.front().issued.issued_ns),
                  false};
}

Result<StepPace> PaceOf(const Trace& trace) {
  if (trace.sections.empty()) return MakeError(ErrorKind::kNotFound, "the trace holds no process");
  return PaceOfSection(CallsOf(trace.sections.front()));
}

}  // namespace dynamiccl
