// SPDX-License-Identifier: Apache-2.0
// What a process issued in the last moments, from the trace that it is writing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/collective/collective.h"
#include "src/collective/collective_config.h"
#include "src/collective/decided_by.h"
#include "traces/format/trace.h"

namespace dynamiccl {

// Calls of one collective and size.
struct LiveKey {
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;  // NCCL's total, the power of two below
  uint64_t calls = 0;
  uint64_t all_bytes = 0;
  std::optional<double> median_us;         // of those that were timed
  std::optional<CollectiveConfig> config;  // the last tuner's answer
  DecidedBy decided_by = DecidedBy::kNccl;
};

struct LiveProcess {
  int rank = -1;
  int64_t process_id = 0;
  std::string host;
  double seconds = 0;  // what the counts below are of
  uint64_t calls = 0;
  uint64_t bytes = 0;
  uint64_t steps = 0;  // that the program marked
  std::map<DecidedBy, uint64_t> decisions;
  std::vector<LiveKey> keys;          // most bytes first
  double idle_seconds = 0;            // since the last call; negative: there was none
  std::string inside;                 // the call that a thread has not returned from: "AllReduce of 8M"
  double inside_seconds = 0;          // for how long
  std::optional<double> free_memory;  // the share of its device's memory, where the program tells
};

// Of the `window_ns` before `now_ns` (CLOCK_MONOTONIC of the section's host). Where the section begins later,
// of what it has.
LiveProcess LiveCallsOf(const TraceSection& section, int64_t now_ns, int64_t window_ns);

}  // namespace dynamiccl
