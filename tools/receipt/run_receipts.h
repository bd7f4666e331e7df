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
  // Files that could not be read, or are too large to be read after each run, as sentences.
  std::vector<std::string> left_out;
};

// One receipt for each NCCL_ and DYNAMICCL_ setting that the job had, and for each rule of its rules file.
// Empty where nothing was asked. Never fails: what cannot be read is left out, and said.
RunReceipts ReceiptsOfRun(const FinishedRun& run);

// One short block: a line with the counts, then one for each setting that is not in effect, for each that is,
// and one for all that cannot be proved. Empty where nothing was asked.
std::vector<std::string> RunReceiptLines(const RunReceipts& receipts);

}  // namespace dynamiccl
