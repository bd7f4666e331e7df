// SPDX-License-Identifier: Apache-2.0
// Counts the calls of a window in one pass.
#include "tools/running/live_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>
#include <tuple>
#include <utility>

#include "src/base/statistics.h"
#include "src/collective/size_class.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {
namespace {

using KeyId = std::pair<Collective, uint64_t>;

// A key under construction, with the times of its calls.
struct KeyCalls {
  LiveKey key;
  std::vector<double> times_us;
};

void Count(const TraceCall& call, std::map<KeyId, KeyCalls>& keys, LiveProcess& live) {
  const CollectiveCall& issued = call.issued.call;
  ++live.calls;
  live.bytes += issued.bytes;
  KeyCalls& counted = keys[{issued.collective, std::bit_floor(issued.bytes)}];
  ++counted.key.calls;
  counted.key.all_bytes += issued.bytes;
  counted.key.role = call.issued.labelled_role;
  if (call.issued.labelled_stage != ZeroStage::kUnknown) live.stage = call.issued.labelled_stage;
  if (call.issued.labelled_phase != Phase::kUnknown) live.phase = call.issued.labelled_phase;
  if (call.duration_source != DurationSource::kNone)
    counted.times_us.push_back(static_cast<double>(call.issued.duration_ns) / 1e3);
  if (!call.decision) return;
  ++live.decisions[call.decision->decided_by];
  counted.key.config = call.decision->config;
  counted.key.decided_by = call.decision->decided_by;
}

void PutKeys(std::map<KeyId, KeyCalls>& keys, LiveProcess& live) {
  for (auto& [id, counted] : keys) {
    std::tie(counted.key.collective, counted.key.bytes) = id;
    if (!counted.times_us.empty()) counted.key.median_us = MedianInPlace(counted.times_us);
    live.keys.push_back(counted.key);
  }
  std::stable_sort(live.keys.begin(), live.keys.end(),
                   [](const LiveKey& a, const LiveKey& b) { return a.all_bytes > b.all_bytes; });
}

// Describes the call that has been inside the library for the longest time.
void PutInside(const SectionCalls& calls, int64_t now_ns, LiveProcess& live) {
  for (const InsideView& inside : calls.inside) {
    const double seconds = static_cast<double>(now_ns - inside.since_ns) * 1e-9;
    if (seconds < live.inside_seconds) continue;
    live.inside_seconds = seconds;
    live.inside = inside.init
                      ? fmt::format("making a communicator of {} ranks", inside.created.n_ranks)
                      : fmt::format("{} of {}", Name(inside.call.collective), FormatBytes(inside.call.bytes));
  }
}

// Number of distinct steps: programs mark each phase of a step.
uint64_t StepsSince(const SectionCalls& calls, int64_t since) {
  std::set<uint64_t> steps;
  for (const StepView& step : calls.steps) {
    if (step.marked_ns >= since) steps.insert(step.step);
  }
  return steps.size();
}

}  // namespace

LiveProcess LiveCallsOf(const TraceSection& section, int64_t now_ns, int64_t window_ns) {
  const SectionCalls calls = CallsOf(section);
  LiveProcess live{.rank = section.rank, .process_id = section.process_id, .host = section.host};
  int64_t since = std::max(now_ns - window_ns, section.opened.monotonic_ns);
  // If the reader left calls out or the recorder overwrote them, these calls were issued before the first
  // record. The window therefore begins at the first record.
  if (section.lost > 0 && !calls.calls.empty()) since = std::max(since, calls.calls.front().issued.issued_ns);
  live.seconds = static_cast<double>(std::max<int64_t>(now_ns - since, 1)) * 1e-9;
  std::map<KeyId, KeyCalls> keys;
  for (const TraceCall& call : calls.calls) {
    if (call.issued.issued_ns >= since) Count(call, keys, live);
  }
  PutKeys(keys, live);
  live.steps = StepsSince(calls, since);
  live.idle_seconds =
      calls.calls.empty() ? -1 : static_cast<double>(now_ns - calls.calls.back().issued.issued_ns) * 1e-9;
  PutInside(calls, now_ns, live);
  if (!calls.memory.empty() && calls.memory.back().total_bytes > 0) {
    live.free_memory = static_cast<double>(calls.memory.back().free_bytes) /
                       static_cast<double>(calls.memory.back().total_bytes);
  }
  return live;
}

}  // namespace dynamiccl
