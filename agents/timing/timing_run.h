// SPDX-License-Identifier: Apache-2.0
// Times of a job's collectives, and what happened to its fabric or ranks: what timing detectors learn from
// and are judged on. Read from folders that tools/bench/timing_runs.py makes (docs/formats/timing_runs.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "traces/format/trace.h"

namespace dynamiccl::agents {

enum class TimingEvent : uint8_t { kQuiet = 0, kDegraded, kCongested, kStraggler, kOneLink, kSizes };
inline constexpr int kTimingEvents = 6;
// As in runs.jsonl.
std::string_view Name(TimingEvent event);
Result<TimingEvent> ParseTimingEvent(std::string_view name);

// One call as its communicator's leader hears of it: see src/decision/guard/timed_calls.h.
struct TimedCall {
  uint64_t key = 0;  // alike calls: collective and bytes
  int64_t at_ns = 0;
  double transfer_ns = 0;  // least of the ranks' kernel times
  double skew_ns = 0;      // greatest less least
};

struct TimingRun {
  std::string fabric;
  TimingEvent event = TimingEvent::kQuiet;
  double factor = 1;
  size_t changed = 0;  // index of the first call after the event; number of calls where there is none
  double load = 0;     // of the machine, processes that wanted to run
  int ranks = 0;
  std::vector<TimedCall> calls;

  bool quiet() const { return event == TimingEvent::kQuiet; }
  size_t keys() const;  // kinds of calls before the event
};

// Calls whose times are known of every rank, by call number. `at_call` in these.
TimingRun RunOf(const Trace& trace, int64_t at_call);

// Every run of the folder. A line, trace or hash that is not as the format says is an error that names it.
Result<std::vector<TimingRun>> ReadTimingRuns(const std::string& folder);

}  // namespace dynamiccl::agents
