// SPDX-License-Identifier: Apache-2.0
#include "tools/record/found_choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "src/base/settings.h"
#include "src/decision/site_store/site_store_file.h"
#include "tools/report/choice_comparison.h"
#include "tools/running/metrics_reading.h"

namespace dynamiccl {
namespace {

// The sentence names at most this many choices. It states only the number of the others.
constexpr size_t kNamed = 4;

// The labels of GuardReason::kSearch and GuardReason::kStepsChanged.
constexpr const char* kBegun = "trials_begin";
constexpr const char* kEnded = "steps_have_changed";
// The label of DecidedBy::kTrial.
constexpr const char* kTrial = "trial";

std::string NameOf(const SiteKey& key, const Confirmed& confirmed) {
  return fmt::format("{} of {} {}", Name(key.key.collective), Name(key.key.size_class),
                     Name(confirmed.config));
}

// Why an experiment of the job has confirmed nothing.
std::string WhyNothing(const std::optional<ExperimentCounts>& experiments) {
  if (!experiments) return "";
  if (experiments->ended > 0)
    return fmt::format(": steps came with other calls, which ended {} of its experiments",
                       experiments->ended);
  if (experiments->begun > 0 || experiments->trials > 0)
    return ": the job ended before its experiment had a result";
  return ": no experiment began, which takes seven steps in a row with the same calls, and 14 calls";
}

}  // namespace

std::optional<ExperimentCounts> ExperimentsIn(const std::vector<std::string>& metrics) {
  const auto count = [](const std::map<std::string, double>& sums, const char* label) {
    const auto found = sums.find(label);
    return found == sums.end() ? 0 : static_cast<uint64_t>(found->second);
  };
  std::optional<ExperimentCounts> most;
  uint64_t trials = 0;
  for (const std::string& text : metrics) {
    const std::vector<MetricLine> lines = ParseMetrics(text);
    const auto versions = SumBy(lines, "dynamiccl_table_versions_total", "reason");
    if (versions.empty()) continue;
    trials = std::max(trials, count(SumBy(lines, "dynamiccl_decisions_total", "decided_by"), kTrial));
    const ExperimentCounts counts{count(versions, kBegun), count(versions, kEnded)};
    if (!most || counts.begun + counts.ended > most->begun + most->ended) most = counts;
  }
  if (most) most->trials = trials;
  return most;
}

std::string DescribeFound(const SiteStore& before, const SiteStore& after, const std::string& keep,
                          const std::optional<ExperimentCounts>& experiments) {
  std::string named;
  size_t better = 0, tried = 0;
  for (const auto& [key, confirmed] : after.entries()) {
    const auto known = before.entries().find(key);
    if (known != before.entries().end() && known->second == confirmed) continue;
    ++tried;
    if (confirmed.config.leaves_nccl_alone()) continue;
    if (++better <= kNamed) named += (named.empty() ? "" : ", ") + NameOf(key, confirmed);
  }
  if (tried == 0) return "nothing was confirmed" + WhyNothing(experiments);
  if (better == 0)
    return fmt::format("nothing better than NCCL's choice was found for {} kinds of call", tried);
  if (better > kNamed) named += fmt::format(" and {} more", better - kNamed);
  return "found better than NCCL's choice: " + named + (keep.empty() ? "" : "; " + keep);
}

Result<FoundChoices> FoundChoices::Watch(RuntimeOptions& runtime) {
  FoundChoices found;
  found.path_ = runtime.site_store.empty() ? TextSetting(Setting::kSiteStore) : runtime.site_store;
  if (found.path_.empty()) {
    DYNAMICCL_TRY(TemporaryFolder folder, TemporaryFolder::Create("found"));
    found.folder_.emplace(std::move(folder));
    found.path_ = runtime.site_store = found.folder_->File("found.dcsite");
  } else if (auto before = ReadSiteStore(found.path_)) {
    found.before_ = std::move(*before);
  }
  return found;
}

std::string FoundChoices::Describe(const std::vector<std::string>& metrics) const {
  const auto after = ReadSiteStore(path_);
  if (!after) return "";
  return DescribeFound(before_, *after, own() ? "--site-store FILE keeps it for the next job" : "",
                       ExperimentsIn(metrics));
}

}  // namespace dynamiccl
