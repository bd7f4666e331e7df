// SPDX-License-Identifier: Apache-2.0
// A launch whose calls are recorded: every process writes a file of its own, which survives even SIGKILL, and
// afterwards they are put together into one trace.
#pragma once

#include <string>

#include "tools/launch/launcher.h"
#include "tools/report/coverage_ledger.h"

namespace dynamiccl {

struct RecordedLaunch {
  LaunchOutcome outcome;
  size_t processes = 0;  // that called NCCL
  uint64_t records = 0;
  uint64_t lost = 0;
  uint64_t bytes = 0;       // of the merged file
  CoverageLedger coverage;  // of the first process
  std::string warning;      // when the ranks' records contradict each other; empty otherwise
};

// The value for RuntimeOptions::trace that goes with `output`.
std::string PartPattern(const std::string& output);

// Launches `plan`, whose environment records to PartPattern(output), and merges what the processes left into
// `output`, also when the job failed or was interrupted. Parts are removed, those of an earlier broken run
// first. No process that called NCCL is an error.
Result<RecordedLaunch> LaunchRecorded(const LaunchPlan& plan, const std::string& output);

}  // namespace dynamiccl
