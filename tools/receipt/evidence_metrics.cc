// SPDX-License-Identifier: Apache-2.0
// Reads DynamICCL's metrics of one process: how many calls were pinned, who decided the others, and which
// configs ran.
#include <fmt/format.h>

#include "src/collective/legal_configs.h"
#include "tools/receipt/evidence.h"
#include "tools/running/metrics_reading.h"

namespace dynamiccl {
namespace {

constexpr std::string_view kInfo = "dynamiccl_info";

std::string LabelOf(const MetricLine& metric, const char* label) {
  const auto found = metric.labels.find(label);
  return found == metric.labels.end() ? "" : found->second;
}

// Returns the enumerator below `count` that is called `name`; nothing if there is none.
template <typename Enum>
std::optional<Enum> Named(const std::string& name, int count) {
  for (int i = 0; i < count; ++i) {
    if (Name(static_cast<Enum>(i)) == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

void AddTimed(const MetricLine& metric, Collective collective, CountedCalls& counted) {
  const auto config = ParseConfig(LabelOf(metric, "config"));
  if (!config || config->leaves_nccl_alone()) return;
  const auto calls = static_cast<uint64_t>(metric.value);
  for (ChosenCalls& one : counted.timed) {
    if (one.collective != collective || one.config != *config) continue;
    one.calls += calls;
    return;
  }
  counted.timed.push_back(
      {.collective = collective, .config = *config, .calls = calls, .line = counted.line});
}

void AddLine(const MetricLine& metric, CountedCalls& counted) {
  if (metric.name == kInfo) {
    counted.mode = LabelOf(metric, "mode");
    counted.policy = LabelOf(metric, "policy");
    return;
  }
  const auto collective = ParseCollective(LabelOf(metric, "collective"));
  if (!collective || metric.value < 1) return;
  const auto number = static_cast<uint64_t>(metric.value);
  if (metric.name == "dynamiccl_calls_total") {
    if (const auto coverage = Named<Coverage>(LabelOf(metric, "coverage"), kCoverages))
      counted.calls[{*collective, *coverage}] += number;
  } else if (metric.name == "dynamiccl_decisions_total") {
    if (const auto who = Named<DecidedBy>(LabelOf(metric, "decided_by"), kDeciders))
      counted.decisions[{*collective, *who}] += number;
  } else if (metric.name == "dynamiccl_collective_seconds_count") {
    AddTimed(metric, *collective, counted);
  }
}

template <typename Key>
uint64_t SumWhere(const std::map<std::pair<Collective, Key>, uint64_t>& counts, Key key) {
  uint64_t sum = 0;
  for (const auto& [of, count] : counts) sum += of.second == key ? count : 0;
  return sum;
}

}  // namespace

uint64_t CountedCalls::CallsOf(Coverage coverage) const {
  return SumWhere(calls, coverage);
}

uint64_t CountedCalls::DecisionsBy(DecidedBy who) const {
  return SumWhere(decisions, who);
}

uint64_t CountedCalls::n_decisions() const {
  uint64_t sum = 0;
  for (const auto& [of, count] : decisions) sum += count;
  return sum;
}

bool LooksLikeMetrics(std::string_view head) {
  return head.find(kInfo) != std::string_view::npos && head.find("# TYPE ") != std::string_view::npos;
}

void AddMetrics(const std::string& place, std::string_view text, Evidence& evidence) {
  CountedCalls counted;
  counted.line = {place, 0, ""};
  for (const MetricLine& metric : ParseMetrics(text)) AddLine(metric, counted);
  uint64_t calls = 0;
  for (const auto& [of, count] : counted.calls) calls += count;
  counted.line.text = fmt::format("{} calls counted in mode {}", calls, counted.mode);
  for (ChosenCalls& one : counted.timed) one.line = counted.line;
  if (!evidence.counted && calls > 0) evidence.counted = std::move(counted);
}

}  // namespace dynamiccl
