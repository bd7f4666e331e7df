// SPDX-License-Identifier: Apache-2.0
// Reads the reports of the hook in a job's Python processes (plugin/startup/dynamiccl_settings/report.py):
// which framework the script uses, which settings were applied, and which values the framework then had.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/tune/framework_settings.h"

namespace dynamiccl {

// The DistributedDataParallel objects of a process.
struct DdpReport {
  int constructed = 0;
  double bucket_cap_mb = 0;
  uint64_t gradient_bytes = 0;
  // Bytes of each parameter that is trained, in the order of registration; empty: not reported.
  std::vector<uint64_t> parameters;
  // True: the gradients are in host memory, so the process itself computes them.
  bool on_host = false;
  // Bytes of each bucket by the reducer's own account; empty where this torch keeps none.
  std::vector<uint64_t> buckets;
  // Bytes of each piece of memory in which the gradients were at an optimizer's step, the smallest first;
  // empty: not reported.
  std::vector<uint64_t> gradient_pieces;
};

// The modules that fully_shard wrapped in a process.
struct Fsdp2Report {
  int wrapped = 0;
  // Bytes of all parameters, those of other ranks included.
  uint64_t parameter_bytes = 0;
  // Memory that was free on the rank's device before the first step; 0: not known.
  uint64_t free_bytes = 0;
  // True: the parameters are in host memory. FSDP2 then waits for each call before it goes on.
  bool on_host = false;
};

// A setting that was asked for. If `reason` is not empty, the setting was not applied, for that reason.
struct AppliedSetting {
  Json asked;
  Json in_effect;
  std::string reason;
};

// The report of one Python process. A launcher such as torchrun also imports torch, so it has a report too,
// but without a framework.
struct HookReport {
  int rank = -1;
  // Says why the settings file could not be used. Empty if it could.
  std::string error;
  std::optional<DdpReport> ddp;
  std::optional<Fsdp2Report> fsdp2;
  std::map<std::string, AppliedSetting> settings;

  bool uses_framework() const { return ddp || fsdp2; }
};

// The value of RuntimeOptions::framework_report that goes with `folder`.
std::string ReportPattern(const std::string& folder);
// The reports in `folder` of processes that use a framework or could not use the settings file, by rank. A
// file that is no report is left out.
std::vector<HookReport> ReadHookReports(const std::string& folder);

}  // namespace dynamiccl
