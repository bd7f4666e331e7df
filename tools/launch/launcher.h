// SPDX-License-Identifier: Apache-2.0
// Starts the ranks of a job on this machine, waits for them, and leaves no process behind.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/launch/launch_plan.h"

namespace dynamiccl {

// The end of one rank. Exactly one of exit_code and signal is set.
struct RankOutcome {
  int rank = 0;
  std::optional<int> exit_code;
  std::optional<int> signal;
  // The rank ended after the launcher had begun to end the job, so its failure is not the cause.
  bool ended_by_us = false;

  bool failed() const { return signal.has_value() || exit_code.value_or(0) != 0; }
};

// The end of a whole launch: one entry for each rank, and why the launcher ended the job, if it did.
struct LaunchOutcome {
  std::vector<RankOutcome> ranks;
  // The rank that failed first in time, which is the likely cause.
  std::optional<RankOutcome> first_failed;
  // Signal that this process received and passed on; 0: none. If it had arrived before the launch, no rank
  // was started.
  int interrupted_by = 0;
  // The time limit of the plan passed.
  bool timed_out = false;
  // Nanoseconds from the start of the first rank to the end of the last one.
  int64_t wall_ns = 0;

  bool ok() const { return !first_failed && interrupted_by == 0 && !timed_out; }
};

// Starts the plan and blocks until every process has ended. When a rank fails, the others get SIGTERM and,
// after plan.grace, SIGKILL. SIGINT, SIGTERM and SIGHUP (unless it is ignored) are passed on to all ranks.
// Processes of a job that is ended get the same signals if they outlive their parent, as the ranks of a shell
// script do. A failed job is not an error: the outcome describes it. An error means that the plan could not
// be carried out, for example because there is no such program.
//
// A rank that has ended stays a zombie until the launch is over, so no other process or group gets its
// number. A process runs one launch at a time, because a launch blocks these signals in the calling thread.
// If this process is killed, the kernel kills the ranks.
Result<LaunchOutcome> Launch(const LaunchPlan& plan);

// Returns one line for the user, such as "rank 1 of 2 ended with exit code 3 after 3.21 s", "rank 0 of 2 was
// killed by signal 9 (SIGKILL) after 0.80 s" or "2 ranks ended well in 3.21 s".
std::string Describe(const LaunchOutcome& outcome);

// Prints the error of a command that ended because a signal ended a launch, and returns the exit code 128 +
// the signal's number. The error says what is kept.
int ExitInterrupted(const Error& error, int signal_number);

// Exit code of a command whose purpose was this launch: 0, 4 when the job failed, or 128 + the signal's
// number.
int ExitCodeOf(const LaunchOutcome& outcome);

}  // namespace dynamiccl
