// SPDX-License-Identifier: Apache-2.0
#include "tools/tune/watched_run.h"

#include <algorithm>
#include <filesystem>

#include "traces/format/trace_calls.h"

namespace dynamiccl {
namespace {

constexpr const char* kTraceEnd = ".watched.ctrace";

size_t DecidedByRules(const Trace& trace) {
  const SectionCalls section = CallsOf(trace.sections.front());
  return static_cast<size_t>(std::ranges::count_if(section.calls, [](const TraceCall& call) {
    return call.decision && call.decision->decided_by == DecidedBy::kRule;
  }));
}

}  // namespace

std::vector<Trace> TracesIn(const std::string& folder) {
  std::vector<Trace> traces;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (!entry.path().string().ends_with(kTraceEnd)) continue;
    Result<Trace> trace = ReadTrace(entry.path(), TraceReading::kSalvage);
    if (trace && !trace->sections.empty()) traces.push_back(std::move(*trace));
  }
  std::ranges::sort(traces, {}, [](const Trace& trace) { return trace.sections.front().rank; });
  return traces;
}

void Watch(const std::string& folder, RuntimeOptions& runtime) {
  runtime.framework_report = ReportPattern(folder);
  if (runtime.trace.empty()) runtime.trace = folder + "/%h.%p" + kTraceEnd;
}

WatchedRun ReadWatched(const std::string& folder) {
  WatchedRun run{.reports = ReadHookReports(folder), .why_no_step = "no collective was recorded"};
  for (const Trace& trace : TracesIn(folder)) {
    Result<RecordedStep> step = StepOf(trace);
    if (!step) continue;
    if (step->steps < kFewestSteps || step->step_ns == 0) {
      run.why_no_step = fmt::format("of the recorded calls no step repeats {} times", kFewestSteps);
      continue;
    }
    run.step = std::move(*step);
    run.why_no_step.clear();
    run.decided_by_rules = DecidedByRules(trace);
    break;
  }
  return run;
}

}  // namespace dynamiccl
