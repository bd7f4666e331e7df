// SPDX-License-Identifier: Apache-2.0
// Actions and costs of a run's guard, from the metrics that the run's processes left (docs/telemetry.md). The
// reason of each table version comes from the job's log.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tools/running/metrics_reading.h"

namespace dynamiccl {

// Sums over all processes of one job. Times are seconds.
struct GuardAccount {
  // Some process has metrics of a guard.
  bool guarded = false;
  // New table versions by reason; reasons that never occurred are left out.
  std::map<std::string, double> versions;
  // Proposed versions to which the ranks did not agree.
  double failed_versions = 0;
  // Calls that the guard did not see, because they came faster than the guard reads the recorded calls.
  double calls_lost = 0;
  // Estimated cost of trials and of timing calls.
  double probing_s = 0;
  // Time of guarded calls by criticality.
  std::map<std::string, double> guarded_s;
  // Host time that the measuring of call times took.
  double timing_s = 0;
  // Records that the traces lost.
  double records_lost = 0;

  // Time of all guarded calls.
  double total_guarded_s() const;
};

// Adds up the metrics of all processes, which must be of one job.
GuardAccount GuardAccountOf(const std::vector<MetricLine>& metrics);

// Reason by version number, from log lines "table v<version>: <reason>; <n> keys, <n> trials". The first line
// of a version counts. Versions of different communicators are not distinguished.
std::map<uint32_t, std::string> VersionReasons(std::string_view log);

}  // namespace dynamiccl
