// SPDX-License-Identifier: Apache-2.0
// The latest calls of a process, from the trace that it is writing (`dynamiccl top`).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/collective/collective.h"
#include "src/collective/collective_config.h"
#include "src/collective/decided_by.h"
#include "src/collective/role.h"
#include "traces/format/trace.h"

namespace dynamiccl {

// The calls of one collective whose bytes lie between the same two powers of two.
struct LiveKey {
  Collective collective = Collective::kAllReduce;
  // NCCL's total, rounded down to a power of two.
  uint64_t bytes = 0;
  uint64_t calls = 0;
  uint64_t all_bytes = 0;
  Role role = Role::kUnknown;  // role of the last call
  // Median of the calls that were timed; not set without any.
  std::optional<double> median_us;
  // The tuner's last answer.
  std::optional<CollectiveConfig> config;
  DecidedBy decided_by = DecidedBy::kNccl;
};

// Counts over the last `seconds` of one process.
struct LiveProcess {
  int rank = -1;
  int64_t process_id = 0;
  std::string host;
  // Seconds that the counts below cover.
  double seconds = 0;
  uint64_t calls = 0;
  uint64_t bytes = 0;
  // Steps that the program marked.
  uint64_t steps = 0;
  std::map<DecidedBy, uint64_t> decisions;
  // ZeRO stage and phase of the last call that has them as labels.
  ZeroStage stage = ZeroStage::kUnknown;
  Phase phase = Phase::kUnknown;
  // Most bytes first.
  std::vector<LiveKey> keys;
  // Seconds since the last call; negative: there was none.
  double idle_seconds = 0;
  // The call from which a thread has not returned: "AllReduce of 8M".
  std::string inside;
  // Seconds since the call named by `inside` began.
  double inside_seconds = 0;
  // Free share of the device's memory, where the program reports it.
  std::optional<double> free_memory;
};

// Counts the calls of one process in the last `window_ns` before `now_ns`, which is CLOCK_MONOTONIC of the
// section's host. If the section begins later than the window, the calls since its beginning are counted.
LiveProcess LiveCallsOf(const TraceSection& section, int64_t now_ns, int64_t window_ns);

}  // namespace dynamiccl
