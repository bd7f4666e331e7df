// SPDX-License-Identifier: Apache-2.0
// Metrics as a job writes them (docs/telemetry.md), read back.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace dynamiccl {

struct MetricLine {
  std::string name;
  std::map<std::string, std::string> labels;
  double value = 0;
};

// Text exposition format 0.0.4 of Prometheus. Lines that are not whole are left out: another program may have
// written them.
std::vector<MetricLine> ParseMetrics(std::string_view text);

// The sum of a metric's lines for each value of `label`.
std::map<std::string, double> SumBy(const std::vector<MetricLine>& metrics, std::string_view name,
                                    const std::string& label);

}  // namespace dynamiccl
