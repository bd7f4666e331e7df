// SPDX-License-Identifier: Apache-2.0
// Times of a job's collectives, and what happened to its fabric or ranks. Timing detectors learn from this
// data and are judged on it. It is read from folders that studies/agents/timing_runs.py writes
// (docs/formats/timing_runs.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "traces/format/trace.h"

namespace dynamiccl::agents {

// The kinds of events that are recorded, or inserted by simulated_timing.h.
enum class TimingEvent : uint8_t { kQuiet = 0, kDegraded, kCongested, kStraggler, kOneLink, kSizes };
// The number of enumerators of TimingEvent.
inline constexpr int kTimingEvents = 6;
// The event's name in runs.jsonl.
std::string_view Name(TimingEvent event);
// The inverse of Name; kInvalidArgument for an unknown name.
Result<TimingEvent> ParseTimingEvent(std::string_view name);

// One call as its communicator's leader learns of it (src/decision/guard/timed_calls.h).
struct TimedCall {
  // Calls with equal collective and bytes have equal keys.
  uint64_t key = 0;
  int64_t at_ns = 0;
  // The least of the ranks' kernel times.
  double transfer_ns = 0;
  // The greatest kernel time minus the least.
  double skew_ns = 0;
};

// One recorded or simulated run.
struct TimingRun {
  std::string fabric;
  TimingEvent event = TimingEvent::kQuiet;
  double factor = 1;
  // Index of the first call after the event. It is the number of calls if there is no event.
  size_t changed = 0;
  // Load of the machine: the number of processes that wanted to run.
  double load = 0;
  int ranks = 0;
  std::vector<TimedCall> calls;

  bool quiet() const { return event == TimingEvent::kQuiet; }
  // The number of different keys before the event, at least 1.
  size_t keys() const;
};

// Returns the calls whose times are known on every rank, in the order of their call numbers. `at_call` is the
// call number of the event; -1 means none. The caller fills in the event, the fabric and the other fields.
TimingRun RunOf(const Trace& trace, int64_t at_call);

// Reads every run of the folder. A line, trace or hash that violates the format is an error that names it.
Result<std::vector<TimingRun>> ReadTimingRuns(const std::string& folder);

}  // namespace dynamiccl::agents
