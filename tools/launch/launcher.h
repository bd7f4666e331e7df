// SPDX-License-Identifier: Apache-2.0
// Starts the ranks of a job on this machine, waits for them, and leaves no process behind.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/launch/launch_plan.h"

namespace dynamiccl {

// How one rank ended. Exactly one of exit_code and signal is set.
struct RankOutcome {
  int rank = 0;
  std::optional<int> exit_code;
  std::optional<int> signal;
  bool ended_by_us = false;  // only ended because another rank failed, or on request

  bool failed() const { return signal.has_value() || exit_code.value_or(0) != 0; }
};

struct LaunchOutcome {
  std::vector<RankOutcome> ranks;
  std::optional<RankOutcome> first_failed;  // in time: the likely cause
  int interrupted_by = 0;                   // signal that this process got and passed on
  bool timed_out = false;
  int64_t wall_ns = 0;

  bool ok() const { return !first_failed && interrupted_by == 0 && !timed_out; }
};

// Blocks until every process has ended. When a rank fails, the others get SIGTERM, and SIGKILL after
// plan.grace. SIGINT, SIGTERM and SIGHUP are passed on. Fails only when the plan itself cannot be carried out
// (no such program). One launch at a time in a process: signals are blocked meanwhile. If this process is
// killed, the kernel kills the ranks.
Result<LaunchOutcome> Launch(const LaunchPlan& plan);

// "rank 1 of 2 ended with exit code 3", "rank 0 of 2 was killed by SIGKILL (9)", "2 ranks ended in 3.21 s".
std::string Describe(const LaunchOutcome& outcome);

// 0, 4 (the job failed) or 128 + signal.
int ExitCodeOf(const LaunchOutcome& outcome);

}  // namespace dynamiccl
