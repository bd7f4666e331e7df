// SPDX-License-Identifier: Apache-2.0
// The receipts of a job that `dynamiccl run` has just started and seen end: from its environment and from the
// files that it wrote by itself. Nothing is asked of the job for them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/launch/launch_plan.h"
#include "tools/receipt/receipt.h"

namespace dynamiccl {

struct FinishedRun {
  // Variables that the launcher set, such as DYNAMICCL_RULES by --rules. They win over this process's own.
  EnvironmentChanges environment;
  bool hostccl = false;
  // LaunchTime() of the job: older files are of other jobs.
  std::filesystem::file_time_type begun;
  // The metrics of the job's processes, where the launcher read them.
  std::vector<std::string> metrics;
};

struct RunReceipts {
  std::vector<Receipt> receipts;
  // Each sentence names a file that could not be read, or that is too large to be read after each run.
  std::vector<std::string> left_out;
};

// Returns a receipt for each NCCL_ and DYNAMICCL_ setting that the job had, and for each rule of its rules
// file; none where nothing was asked. It never fails: files that cannot be read are left out and named.
RunReceipts ReceiptsOfRun(const FinishedRun& run);

// Returns the lines of one short block: first the counts, then each setting that is not in effect, each that
// is, and all that cannot be proved. Returns none where nothing was asked.
std::vector<std::string> RunReceiptLines(const RunReceipts& receipts);

}  // namespace dynamiccl
