// SPDX-License-Identifier: Apache-2.0
// A launch whose NCCL calls are recorded. Every process writes a file of its own, which survives even
// SIGKILL; after the launch these files are merged into one trace.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/launch/launcher.h"
#include "tools/report/coverage_ledger.h"

namespace dynamiccl {

// The hint for a user whose job called no NCCL.
inline constexpr const char* kCallsNoNcclHint =
    "a program that links NCCL statically cannot be recorded (`dynamiccl doctor` says more), and without a "
    "GPU a PyTorch script has to name the backend dynamiccl (docs/torch_backend.md)";

// The end of the launch, and the contents of the merged trace.
struct RecordedLaunch {
  LaunchOutcome outcome;
  // Number of processes that called NCCL, each of which is a section of the trace.
  size_t processes = 0;
  // Number of records of all processes.
  uint64_t records = 0;
  MissingRecords missing;
  // Size of the merged file.
  uint64_t bytes = 0;
  // The calls of the first process that a policy can choose for (tools/report/coverage_ledger.h).
  CoverageLedger coverage;
  // One line when a part could not be read, the parts are not of one trace (`processes` is 0 then), or the
  // ranks' records contradict each other; else empty.
  std::string warning;
};

// The value of RuntimeOptions::trace that goes with `output`: "/path/run.ctrace~%h.%p.part". The runtime
// replaces %h by the host and %p by the process id.
std::string PartPattern(const std::string& output);

// The files of processes (parts) that belong to `output` while its job runs, sorted by name, so that a merge
// of the same files always gives the same trace.
std::vector<std::string> FindParts(const std::string& output);

// Removes the files of processes that belong to `output`. LaunchRecorded leaves them where the merged trace
// could not be written, so that the recording is not lost.
void RemoveParts(const std::string& output);

// Launches `plan`, whose environment must record to PartPattern(output), and merges the parts into `output`,
// also when the job failed or was interrupted. Parts of an earlier run that was killed are removed first, and
// those of this run at the end. It is an error when no process called NCCL, or when two processes were the
// same rank; the parts then stay. If the job itself failed, `warning` says so instead.
// `launch_job` starts the job and waits for it.
using LaunchJob = std::function<Result<LaunchOutcome>(const LaunchPlan&)>;
Result<RecordedLaunch> LaunchRecorded(const LaunchPlan& plan, const std::string& output,
                                      const LaunchJob& launch_job = Launch);

}  // namespace dynamiccl
