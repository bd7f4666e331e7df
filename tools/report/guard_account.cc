// SPDX-License-Identifier: Apache-2.0
// Adds up the guard's Prometheus metrics, and reads from a log why table versions were made.
#include "tools/report/guard_account.h"

#include <charconv>

namespace dynamiccl {
namespace {

// Sum of the metric called `name` over all processes and labels.
double SumOf(const std::vector<MetricLine>& metrics, std::string_view name) {
  double sum = 0;
  for (const MetricLine& line : metrics) sum += line.name == name ? line.value : 0;
  return sum;
}

std::map<std::string, double> WithoutZeros(std::map<std::string, double> values) {
  std::erase_if(values, [](const auto& value) { return value.second == 0; });
  return values;
}

// Reads a table version and its reason from the text after "table v" in a log line, for example "5: slower
// than NCCL; 1 keys, 0 trials". Ignores a text of another form.
void ReadVersionLine(std::string_view text, std::map<uint32_t, std::string>& reasons) {
  uint32_t version = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (failure != std::errc()) return;
  const std::string_view rest = text.substr(static_cast<size_t>(end - text.data()));
  const size_t semicolon = rest.find("; ");
  if (!rest.starts_with(": ") || semicolon == rest.npos || rest.find(" trials", semicolon) == rest.npos)
    return;
  reasons.try_emplace(version, rest.substr(2, semicolon - 2));
}

}  // namespace

double GuardAccount::total_guarded_s() const {
  double sum = 0;
  for (const auto& [criticality, seconds] : guarded_s) sum += seconds;
  return sum;
}

GuardAccount GuardAccountOf(const std::vector<MetricLine>& metrics) {
  GuardAccount account;
  for (const MetricLine& line : metrics) account.guarded |= line.name == "dynamiccl_guarded_seconds_total";
  account.versions = WithoutZeros(SumBy(metrics, "dynamiccl_table_versions_total", "reason"));
  account.failed_versions = SumOf(metrics, "dynamiccl_table_versions_failed_total");
  account.calls_lost = SumOf(metrics, "dynamiccl_guard_calls_lost_total");
  account.probing_s = SumOf(metrics, "dynamiccl_probing_seconds_total");
  account.guarded_s = WithoutZeros(SumBy(metrics, "dynamiccl_guarded_seconds_total", "criticality"));
  account.timing_s = SumOf(metrics, "dynamiccl_timing_seconds_total");
  account.records_lost = SumOf(metrics, "dynamiccl_trace_records_lost_total");
  return account;
}

std::map<uint32_t, std::string> VersionReasons(std::string_view log) {
  std::map<uint32_t, std::string> reasons;
  constexpr std::string_view kBegin = "table v";
  while (!log.empty()) {
    const std::string_view line = log.substr(0, log.find('\n'));
    const size_t at = line.find(kBegin);
    if (at != line.npos) ReadVersionLine(line.substr(at + kBegin.size()), reasons);
    log.remove_prefix(std::min(line.size() + 1, log.size()));
  }
  return reasons;
}

}  // namespace dynamiccl
