// SPDX-License-Identifier: Apache-2.0
#include "tools/record/decided_launch.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "src/base/settings.h"
#include "src/base/whole_file.h"
#include "src/collective/decided_by.h"
#include "tools/launch/temporary_folder.h"
#include "tools/launch/written_files.h"
#include "tools/running/metrics_reading.h"

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;

// A larger file is not one of DynamICCL's metrics: those of a process have some hundred lines.
constexpr size_t kMaxLogBytes = 16 << 20;
// The label of GuardReason::kSlowerThanNccl.
constexpr const char* kSlower = "slower_than_NCCL";

// The texts of the files that match and were written since `begun`.
std::vector<std::string> TextsSince(const std::string& pattern, fs::file_time_type begun) {
  std::vector<std::string> texts;
  for (const std::string& path : FilesWrittenSince(pattern, begun)) {
    const auto file = ReadWholeFile(path.c_str(), kMaxLogBytes);
    if (!file) continue;
    const auto* text = reinterpret_cast<const char*>(file->bytes.data());
    texts.emplace_back(text, file->bytes.size());
  }
  return texts;
}

std::map<std::string, uint64_t> CountsBy(const std::vector<MetricLine>& metrics, const char* name,
                                         const char* label) {
  std::map<std::string, uint64_t> counts;
  for (const auto& [value, count] : SumBy(metrics, name, label)) counts[value] = static_cast<uint64_t>(count);
  return counts;
}

int RankIn(const std::vector<MetricLine>& metrics) {
  for (const MetricLine& metric : metrics) {
    const auto rank = metric.labels.find("rank");
    if (rank != metric.labels.end()) return std::atoi(rank->second.c_str());
  }
  return -1;
}

DecisionAccount AccountIn(const std::string& text) {
  const std::vector<MetricLine> metrics = ParseMetrics(text);
  DecisionAccount account{RankIn(metrics), CountsBy(metrics, "dynamiccl_decisions_total", "decided_by"), {}};
  const auto versions = CountsBy(metrics, "dynamiccl_table_versions_total", "reason");
  if (const auto slower = versions.find(kSlower); slower != versions.end())
    account.taken_back = slower->second;
  return account;
}

// Everyone except NCCL who can decide calls, with the text that Describe writes for each, in the order of the
// line.
constexpr struct {
  DecidedBy by;
  const char* text;
} kDecidersInLine[] = {
    {DecidedBy::kPolicy, "the policy chose for"}, {DecidedBy::kRule, "rules for"},
    {DecidedBy::kGuard, "the guard for"},         {DecidedBy::kTrial, "its trials for"},
    {DecidedBy::kUserPin, "your pins for"},       {DecidedBy::kChainedTuner, "your own tuner for"}};

}  // namespace

uint64_t DecisionAccount::calls() const {
  uint64_t calls = 0;
  for (const auto& [by, count] : decided_by) calls += count;
  return calls;
}

std::string Describe(const DecidedLaunch& launch) {
  if (launch.decisions) return Describe(*launch.decisions);
  if (launch.counted) return "no call was decided: NCCL asked on no rank, or the ranks ended before it did";
  return "who decided was not counted: set DYNAMICCL_METRICS=FOLDER/%h.%p.prom to a folder that all hosts "
         "share";
}

std::string ModeOf(const RuntimeOptions& runtime) {
  return runtime.mode.empty() ? TextSetting(Setting::kMode) : runtime.mode;
}

bool Decides(const RuntimeOptions& runtime) {
  const std::string mode = ModeOf(runtime);
  if (mode == "off" || mode == "observe") return false;
  if (mode == "adaptive") return true;
  return !runtime.policy.empty() || !runtime.rules.empty() || !TextSetting(Setting::kPolicy).empty() ||
         !TextSetting(Setting::kRules).empty();
}

bool RunsHere(int n_ranks, const std::string& program) {
  return n_ranks > 0 || fs::path(program).filename() == "torchrun";
}

std::optional<DecisionAccount> DecisionsIn(const std::vector<std::string>& metrics) {
  std::optional<DecisionAccount> first;
  for (const std::string& text : metrics) {
    DecisionAccount account = AccountIn(text);
    if (account.calls() == 0) continue;
    const bool lower = !first || (account.rank >= 0 && (first->rank < 0 || account.rank < first->rank));
    if (lower) first = std::move(account);
  }
  return first;
}

std::string Describe(const DecisionAccount& account) {
  const auto count = [&](DecidedBy by) {
    const auto found = account.decided_by.find(std::string(Name(by)));
    return found == account.decided_by.end() ? 0 : found->second;
  };
  std::string line = account.rank < 0 ? "one rank" : fmt::format("rank {}", account.rank);
  line += fmt::format(": of {} calls", account.calls());
  for (const auto& [by, text] : kDecidersInLine) {
    if (count(by) > 0 || by == DecidedBy::kPolicy)
      line += fmt::format("{} {} {}", by == DecidedBy::kPolicy ? "" : ",", text, count(by));
  }
  line += fmt::format(", and {} were left to NCCL", count(DecidedBy::kNccl) + count(DecidedBy::kSample));
  if (account.taken_back) line += fmt::format("; the guard took choices back {} times", *account.taken_back);
  return line;
}

Result<DecidedLaunch> LaunchDecided(LaunchPlan plan, const std::string& metrics) {
  DecidedLaunch launch;
  std::string pattern = metrics;
  std::optional<TemporaryFolder> folder;
  if (pattern.empty() && RunsHere(plan.n_ranks, plan.command.front())) {
    DYNAMICCL_TRY(TemporaryFolder made, TemporaryFolder::Create("decisions"));
    folder.emplace(std::move(made));
    pattern = folder->File("%h.%p.prom");
    plan.environment["DYNAMICCL_METRICS"] = pattern;
  }
  const auto begun = LaunchTime();
  DYNAMICCL_TRY(launch.outcome, Launch(plan));
  launch.counted = !pattern.empty();
  if (launch.counted) launch.metrics = TextsSince(pattern, begun);
  launch.decisions = DecisionsIn(launch.metrics);
  return launch;
}

}  // namespace dynamiccl
