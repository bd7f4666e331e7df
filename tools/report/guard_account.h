// SPDX-License-Identifier: Apache-2.0
// What the guard of a run did and spent, from the metrics that its processes left (docs/telemetry.md), and
// why it proposed each table version, from a log of the job.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tools/running/metrics_reading.h"

namespace dynamiccl {

struct GuardAccount {
  bool guarded = false;                    // some process has metrics of a guard
  std::map<std::string, double> versions;  // by reason; those that never occurred are left out
  double failed_versions = 0;
  double calls_lost = 0;
  double probing_s = 0;                     // estimated cost of trials and timing
  std::map<std::string, double> guarded_s;  // by criticality
  double timing_s = 0;                      // host time that taking times cost
  double records_lost = 0;

  double total_guarded_s() const;
};

// Of all processes together. The files of one job: numbers are added up.
GuardAccount GuardAccountOf(const std::vector<MetricLine>& metrics);

// Version to reason, from lines "table v<version>: <reason>; <n> keys, <n> trials". The first of equal
// versions counts; versions of several communicators are not told apart.
std::map<uint32_t, std::string> VersionReasons(std::string_view log);

}  // namespace dynamiccl
