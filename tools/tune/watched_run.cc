// SPDX-License-Identifier: Apache-2.0
#include "tools/tune/watched_run.h"

#include <algorithm>
#include <filesystem>

#include "tools/ab/job_in_turns.h"
#include "tools/advise/matched_times.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {
namespace {

constexpr const char* kTraceEnd = ".watched.ctrace";

size_t DecidedByRules(const SectionCalls& section) {
  return static_cast<size_t>(std::ranges::count_if(section.calls, [](const TraceCall& call) {
    return call.decision && call.decision->decided_by == DecidedBy::kRule;
  }));
}

// Reads the traces that the processes of a watched launch left in `folder`, also those of killed processes.
// The lowest rank comes first. A file that was cut before its header is left out.
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

// Returns the times of the collectives over all ranks. On one rank alone, waiting for a late rank would look
// like time of the network.
std::vector<TimedCell> TimesOn(const std::vector<Trace>& traces) {
  Trace all;
  for (const Trace& trace : traces)
    all.sections.insert(all.sections.end(), trace.sections.begin(), trace.sections.end());
  const MemoryRecords records(all);
  const auto sections = ScanSections(records, SIZE_MAX);
  return sections ? TimesOfCells(records, *sections).value_or(std::vector<TimedCell>())
                  : std::vector<TimedCell>();
}

}  // namespace

void Watch(const std::string& folder, RuntimeOptions& runtime) {
  runtime.framework_report = ReportPattern(folder);
  if (runtime.trace.empty()) runtime.trace = folder + "/%h.%p" + kTraceEnd;
}

WatchedRun ReadWatched(const std::string& folder, int64_t ended_ns) {
  WatchedRun run{.reports = ReadHookReports(folder), .why_no_step = "no collective was recorded"};
  const std::vector<Trace> traces = TracesIn(folder);
  run.when = CallsOfRun(traces, ended_ns);
  for (const Trace& trace : traces) {
    Result<RecordedStep> step = StepOf(trace);
    if (!step) continue;
    if (step->steps < kFewestSteps || step->step_ns == 0 || step->paced) {
      run.why_no_step = fmt::format("of the recorded calls no step repeats {} times", kFewestSteps);
      continue;
    }
    run.step = std::move(*step);
    run.step->times = TimesOn(traces);
    run.on_host = trace.sections.front().over_hostccl();
    run.why_no_step.clear();
    const SectionCalls calls = CallsOf(trace.sections.front());
    run.decided_by_rules = DecidedByRules(calls);
    run.turns = TurnsOfStart(calls, kStepsOfTurn);
    break;
  }
  return run;
}

}  // namespace dynamiccl
