// SPDX-License-Identifier: Apache-2.0
// Holds what a job's guard did and what it cost, from the metrics that the job's processes left
// (docs/telemetry.md). The reason for each table version comes from the job's log.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tools/running/metrics_reading.h"

namespace dynamiccl {

// Sums of the guard's metrics over all processes of one job. Times are seconds.
struct GuardAccount {
  // True: some process of the job has metrics of a guard.
  bool guarded = false;
  // Number of new table versions by reason; a reason that never occurred is left out.
  std::map<std::string, double> versions;
  // Number of proposed table versions to which the ranks did not agree.
  double failed_versions = 0;
  // Number of calls that the guard did not see, because calls came faster than it reads the recorded ones.
  double calls_lost = 0;
  // Estimated time that experiments cost: calls with a tried config (trials), and the timing of calls.
  double probing_s = 0;
  // Time of the calls that the guard watches, by criticality.
  std::map<std::string, double> guarded_s;
  // Time that the host spent on measuring call times.
  double timing_s = 0;
  // Number of records that did not fit into the traces.
  double records_lost = 0;

  // Time of all calls that the guard watches.
  double total_guarded_s() const;
};

// Adds up the metrics of all processes. The processes must be of one job.
GuardAccount GuardAccountOf(const std::vector<MetricLine>& metrics);

// Returns the reason of each table version, from log lines "table v<version>: <reason>; <n> keys, <n>
// trials". If a version has several lines, the first one counts. Versions of different communicators are not
// distinguished.
std::map<uint32_t, std::string> VersionReasons(std::string_view log);

}  // namespace dynamiccl
