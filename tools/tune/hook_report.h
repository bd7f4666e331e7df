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
  // True if this torch lets the size of the first bucket be set.
  bool takes_first_bucket = false;
  // The arguments of these names; nothing: not reported.
  std::optional<bool> gradient_as_bucket_view, static_graph;
  bool find_unused_parameters = false;
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
  // Number of units, each of which is gathered at once: a wrapped module, or several of them.
  int wrapped = 0;
  // Number of modules in the largest unit that modules_per_unit made; 1: each was wrapped alone.
  int largest_unit = 1;
  // The most modules of one class that the script wraps one after the other. They could share a unit.
  int longest_row = 1;
  // The most units that the script itself lets a unit prefetch; 0: PyTorch's own order, which is one ahead in
  // the backward pass and none in the forward pass.
  int forward_prefetch = 0, backward_prefetch = 0;
  // Number of forward passes of a step: more than one if the script accumulates gradients.
  int passes = 1;
  // True if this torch puts a list of modules into one unit.
  bool takes_lists = false;
  // True if the script divides the states over all ranks in one dimension.
  bool one_mesh = false;
  // Bytes of all parameters, those of other ranks included.
  uint64_t parameter_bytes = 0;
  // Memory that was free on the rank's device before the first step; 0: not known.
  uint64_t free_bytes = 0;
  // True: the parameters are in host memory, and FSDP2 waits for each call before it goes on.
  bool on_host = false;
};

// DeepSpeed's engine in a process, with ZeRO stages 1 to 3. Sizes are in elements.
struct DeepSpeedReport {
  int constructed = 0;
  int stage = 0;
  // Names and sizes of the parameters that are trained, in the order of registration.
  std::vector<std::string> names;
  std::vector<int64_t> parameters;
  // Elements of the parameters that one module has itself, for the module that has the most.
  int64_t largest_module = 0;
  // True: the parameters are in host memory.
  bool on_host = false;
  int64_t micro_steps = 1;
  // The settings that this stage has, by their names in "zero_optimization", with the values in effect.
  std::map<std::string, Json> values;
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
  std::optional<DeepSpeedReport> deepspeed;
  std::map<std::string, AppliedSetting> settings;

  bool uses_framework() const { return ddp || fsdp2 || deepspeed; }
  // True if the process uses the framework to which a setting such as "ddp.bucket_cap_mb" belongs.
  bool uses_framework_of(const std::string& setting) const;
  // True if the gradients are in host memory.
  bool on_host() const;
};

// The value of RuntimeOptions::framework_report that goes with `folder`.
std::string ReportPattern(const std::string& folder);
// The reports in `folder` of processes that use a framework or could not use the settings file, by rank. A
// file that is no report is left out.
std::vector<HookReport> ReadHookReports(const std::string& folder);

}  // namespace dynamiccl
