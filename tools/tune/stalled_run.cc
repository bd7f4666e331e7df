// SPDX-License-Identifier: Apache-2.0
#include "tools/tune/stalled_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "traces/format/trace_calls.h"

namespace dynamiccl {
namespace {

constexpr int64_t kShortestHangNs = 2'000'000'000;
constexpr int64_t kStepsOfHang = 10;
// A run may pause for longer than the unchanged job did, because the machine differs between two runs.
constexpr int64_t kTimesOwnPause = 2;

void Add(const TraceSection& section, RunCalls& run) {
  const int64_t to_realtime = section.opened.realtime_ns - section.opened.monotonic_ns;
  const std::vector<TraceCall> calls = CallsOf(section).calls;
  if (calls.empty()) return;
  for (size_t i = calls.size() / 2 + 1; i < calls.size(); ++i)
    run.longest_pause_ns =
        std::max(run.longest_pause_ns, calls[i].issued.issued_ns - calls[i - 1].issued.issued_ns);
  run.last_ns = std::max(run.last_ns, calls.back().issued.issued_ns + to_realtime);
}

}  // namespace

RunCalls CallsOfRun(const std::vector<Trace>& traces, int64_t ended_ns) {
  RunCalls run{.ended_ns = ended_ns};
  for (const Trace& trace : traces)
    for (const TraceSection& section : trace.sections) Add(section, run);
  return run;
}

std::string WhyStalled(const RunCalls& run, const RunCalls& base, int64_t step_ns) {
  if (run.last_ns == 0) return {};
  const int64_t silent_ns = run.ended_ns - run.last_ns;
  const int64_t of_base_ns = base.last_ns == 0 ? 0 : base.ended_ns - base.last_ns;
  const int64_t patience_ns = std::max({kShortestHangNs, kStepsOfHang * step_ns,
                                        kTimesOwnPause * base.longest_pause_ns, kTimesOwnPause * of_base_ns});
  if (silent_ns <= patience_ns) return {};
  return fmt::format("the job stood still: it made no call in its last {:.0f} s, and did not end",
                     static_cast<double>(silent_ns) * 1e-9);
}

}  // namespace dynamiccl
