// SPDX-License-Identifier: Apache-2.0
// Parses one line after the other by recursive descent.
#include "tools/running/metrics_reading.h"

#include <cstdlib>
#include <optional>

namespace dynamiccl {
namespace {

// Reads one line from left to right. `rest_` is what has not been read.
class LineReader {
 public:
  explicit LineReader(std::string_view line) : rest_(line) {}

  std::optional<MetricLine> Read() {
    MetricLine metric;
    metric.name = UpTo("{ ");
    if (metric.name.empty()) return {};
    if (Take('{')) {
      while (!Take('}')) {
        if (!ReadLabel(metric)) return {};
      }
    }
    if (!Take(' ')) return {};
    const std::string number(rest_);
    char* end = nullptr;
    metric.value = std::strtod(number.c_str(), &end);
    if (end == number.c_str()) return {};
    return metric;
  }

 private:
  // Consumes the next character if it is `c`.
  bool Take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  // Consumes and returns everything before the first of the characters `ends`.
  std::string UpTo(std::string_view ends) {
    const size_t end = rest_.find_first_of(ends);
    const std::string text(rest_.substr(0, end));
    rest_.remove_prefix(text.size());
    return text;
  }
  // Reads name="value" and the comma after it. A backslash in the value makes the next character literal.
  bool ReadLabel(MetricLine& metric) {
    const std::string name = UpTo("=");
    if (!Take('=') || !Take('"')) return false;
    std::string value;
    while (!rest_.empty() && rest_.front() != '"') {
      if (Take('\\') && rest_.empty()) return false;
      value += rest_.front();
      rest_.remove_prefix(1);
    }
    if (!Take('"')) return false;
    metric.labels[name] = value;
    Take(',');
    return true;
  }

  std::string_view rest_;
};

}  // namespace

std::vector<MetricLine> ParseMetrics(std::string_view text) {
  std::vector<MetricLine> metrics;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.starts_with('#')) continue;
    if (auto metric = LineReader(line).Read()) metrics.push_back(std::move(*metric));
  }
  return metrics;
}

std::map<std::string, double> SumBy(const std::vector<MetricLine>& metrics, std::string_view name,
                                    const std::string& label) {
  std::map<std::string, double> sums;
  for (const MetricLine& metric : metrics) {
    const auto value = metric.labels.find(label);
    if (metric.name == name && value != metric.labels.end()) sums[value->second] += metric.value;
  }
  return sums;
}

}  // namespace dynamiccl
