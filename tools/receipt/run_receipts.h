// SPDX-License-Identifier: Apache-2.0
// Writes the receipts of a job that `dynamiccl run` has just started and waited for. They come from the job's
// environment and from files that the job writes anyway, so receipts cost the job nothing.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/launch/launch_plan.h"
#include "tools/receipt/receipt.h"

namespace dynamiccl {

struct FinishedRun {
  // Variables that the launcher set, such as DYNAMICCL_RULES for --rules. They win over this process's
  // variables.
  EnvironmentChanges environment;
  bool hostccl = false;
  // LaunchTime() of the job. Older files belong to other jobs.
  std::filesystem::file_time_type begun;
  // The text of the metrics of each process, where the launcher read them.
  std::vector<std::string> metrics;
};

struct RunReceipts {
  std::vector<Receipt> receipts;
  // Each sentence names a file that could not be read, or that is too large to be read after each run.
  std::vector<std::string> left_out;
  // The settings that name a trace, metrics or a decision log of which the job wrote no file on this machine.
  std::vector<std::string> unwritten = {};
};

// Returns a receipt for each NCCL_ and DYNAMICCL_ setting of the job, and for each rule of its rules file.
// Empty if the job has no such setting. Never fails: `left_out` names the files that cannot be read.
RunReceipts ReceiptsOfRun(const FinishedRun& run);

// Returns the lines of a short block: the counts, then each setting that is not in effect, each that is in
// effect, and one line for all that cannot be proved. Empty without receipts.
std::vector<std::string> RunReceiptLines(const RunReceipts& receipts);

}  // namespace dynamiccl
