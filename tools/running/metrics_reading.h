// SPDX-License-Identifier: Apache-2.0
// Reads the metrics that a job wrote (docs/telemetry.md).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace dynamiccl {

// One sample: name{label="value",...} value.
struct MetricLine {
  std::string name;
  std::map<std::string, std::string> labels;
  double value = 0;
};

// Parses Prometheus's text exposition format 0.0.4. Incomplete lines are skipped, since another program may
// have written them.
std::vector<MetricLine> ParseMetrics(std::string_view text);

// The sum of a metric's lines for each value of `label`; lines without the label do not count.
std::map<std::string, double> SumBy(const std::vector<MetricLine>& metrics, std::string_view name,
                                    const std::string& label);

}  // namespace dynamiccl
