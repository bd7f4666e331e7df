// SPDX-License-Identifier: Apache-2.0
// The claims as a table, and a test on log times: the mean advantage over keys with a normal interval from
// the variance of the means.
#include "studies/agents/baselines/hypotheses.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "src/base/statistics.h"

namespace dynamiccl::agents {
namespace {

// In bytes. Latency dominates buckets and layers up to this size, and bandwidth dominates them from kLarge
// on. No claim covers the sizes between.
constexpr uint64_t kSmall = 64 << 10;
constexpr uint64_t kLarge = 1 << 20;
// The belief says "one or two channels".
constexpr int kFewChannels = 2;
// Half-width of a two-sided 95 % interval, in standard deviations.
constexpr double kTwoSided95 = 1.96;

bool IsRingSimple(const CollectiveConfig& c) {
  return c.algorithm == Algorithm::kRing && c.protocol == Protocol::kSimple;
}
bool IsRing(const CollectiveConfig& c) {
  return c.algorithm == Algorithm::kRing;
}
bool IsSimple(const CollectiveConfig& c) {
  return c.protocol == Protocol::kSimple;
}
bool IsLL(const CollectiveConfig& c) {
  return c.protocol == Protocol::kLL;
}
bool HasFewChannels(const CollectiveConfig& c) {
  return c.channels <= kFewChannels;
}

// The best configuration of one side, chosen on the picking half.
struct Side {
  const SweptConfig* best = nullptr;

  void Take(const SweptConfig& swept) {
    if (best == nullptr || swept.time.pick < best->time.pick) best = &swept;
  }
};

// The variance of the mean of the logs.
double VarianceOfMean(const std::vector<float>& values) {
  const double mean = MeanLog(values);
  double squares = 0;
  for (const float us : values) squares += (std::log(us) - mean) * (std::log(us) - mean);
  const auto n = static_cast<double>(values.size());
  return values.size() < 2 ? 0 : squares / (n - 1) / n;
}

// Sums over keys for the mean advantage and its variance.
struct Sums {
  double advantage = 0, variance = 0, against_default = 0;

  void Add(const SweptKey& key, const SweptConfig& claimed, const SweptConfig& other) {
    advantage += MeanLog(other.values) - MeanLog(claimed.values);
    variance += VarianceOfMean(other.values) + VarianceOfMean(claimed.values);
    if (key.default_choice) against_default += MeanLog(key.default_choice->values) - MeanLog(claimed.values);
  }
};

// True if the claim is about the key.
bool Covers(const ConfigClaim& claim, const SweptKey& key) {
  const auto& of = claim.collectives;
  return std::find(of.begin(), of.end(), key.question.collective) != of.end() &&
         key.question.bytes >= claim.least_bytes && key.question.bytes <= claim.most_bytes;
}

Verdict VerdictOf(const ClaimResult& result, double variance) {
  if (result.keys == 0 || !(variance > 0)) return Verdict::kCannotTell;
  if (result.interval.low > 0) return Verdict::kTrue;
  return result.interval.high < 0 ? Verdict::kFalse : Verdict::kLevel;
}

std::string Row(const ClaimResult& r) {
  if (r.verdict == Verdict::kCannotTell)
    return fmt::format("| {} | {} | {} | - | - | - |\n", r.topology, Name(r.verdict), r.keys);
  return fmt::format("| {} | **{}** | {} | {} | {:+.1f} % ({:+.1f} to {:+.1f}) | {:+.1f} % |\n", r.topology,
                     Name(r.verdict), r.keys, r.wins, 100 * std::expm1(r.advantage),
                     100 * std::expm1(r.interval.low), 100 * std::expm1(r.interval.high),
                     100 * std::expm1(r.against_default));
}

std::string Section(const ConfigClaim& claim,
                    const std::map<std::string, std::vector<SweptKey>>& topologies) {
  std::map<Verdict, int> counts;
  std::string rows;
  for (const auto& [topology, keys] : topologies) {
    const ClaimResult result = JudgeClaim(claim, topology, keys);
    ++counts[result.verdict];
    rows += Row(result);
  }
  return fmt::format(
      "### {}\n\nTrue on {}, false on {}, level on {} topologies; {} cannot tell.\n\n"
      "| topology | verdict | keys | won | claimed is faster by | than the default by |\n"
      "|---|---|---|---|---|---|\n{}\n",
      claim.name, counts[Verdict::kTrue], counts[Verdict::kFalse], counts[Verdict::kLevel],
      counts[Verdict::kCannotTell], rows);
}

using Json = nlohmann::json;

// One row for each split: how well a forest on the histogram of the last 64 calls recognises the stage.
Result<std::string> StageRows(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.contains("splits"))
    return MakeError(ErrorKind::kCorrupt, "not what `dynamiccl-lab-agents structure --json` writes");
  std::string rows;
  for (const Json& split : json["splits"]) {
    for (const Json& who : split.value("who", Json::array())) {
      const Json judged = who.value("after_one_step", Json::object());
      if (!who.value("recogniser", std::string()).starts_with("histogram")) continue;
      rows += fmt::format("| {} | {:.3f} |\n", split.value("split", std::string()),
                          judged.value("stage_f1", 0.0));
    }
  }
  return rows;
}

}  // namespace

const char* Name(Verdict verdict) {
  // Names in the order of the enumerators.
  constexpr const char* kNames[] = {"true", "false", "level", "cannot tell"};
  return kNames[static_cast<size_t>(verdict)];
}

const std::vector<ConfigClaim>& ConfigClaims() {
  static const std::vector<ConfigClaim> claims = {
      {"Large ReduceScatters (1 MiB and more) want Ring and Simple",
       {Collective::kReduceScatter},
       kLarge,
       UINT64_MAX,
       IsRingSimple},
      {"Large ReduceScatters want Ring", {Collective::kReduceScatter}, kLarge, UINT64_MAX, IsRing},
      {"Small parameter gathers (AllGathers up to 64 KiB) want LL",
       {Collective::kAllGather},
       0,
       kSmall,
       IsLL},
      {"Large parameter gathers want LL", {Collective::kAllGather}, kLarge, UINT64_MAX, IsLL},
      {"Small parameter gathers want one or two channels",
       {Collective::kAllGather},
       0,
       kSmall,
       HasFewChannels},
      {"Large parameter gathers want one or two channels",
       {Collective::kAllGather},
       kLarge,
       UINT64_MAX,
       HasFewChannels},
      {"Small buckets (AllReduces and ReduceScatters up to 64 KiB) want LL",
       {Collective::kAllReduce, Collective::kReduceScatter},
       0,
       kSmall,
       IsLL},
      {"Large buckets want Simple",
       {Collective::kAllReduce, Collective::kReduceScatter},
       kLarge,
       UINT64_MAX,
       IsSimple}};
  return claims;
}

ClaimResult JudgeClaim(const ConfigClaim& claim, const std::string& topology,
                       const std::vector<SweptKey>& keys) {
  ClaimResult result{.claim = claim.name, .topology = topology};
  Sums sums;
  for (const SweptKey& key : keys) {
    if (key.topology != topology || !Covers(claim, key)) continue;
    Side claimed, other;
    for (const SweptConfig& swept : key.configs) (claim.claimed(swept.config) ? claimed : other).Take(swept);
    if (claimed.best == nullptr || other.best == nullptr) continue;
    ++result.keys;
    result.wins += MeanLog(claimed.best->values) < MeanLog(other.best->values);
    sums.Add(key, *claimed.best, *other.best);
  }
  if (result.keys == 0) return result;
  const auto n = static_cast<double>(result.keys);
  result.advantage = sums.advantage / n;
  result.against_default = sums.against_default / n;
  const double half = kTwoSided95 * std::sqrt(sums.variance) / n;
  result.interval = {result.advantage - half, result.advantage + half};
  result.verdict = VerdictOf(result, sums.variance);
  return result;
}

Result<std::string> FormatHypotheses(const std::vector<SweptKey>& keys, const std::string& structure_json) {
  std::map<std::string, std::vector<SweptKey>> topologies;
  for (const SweptKey& key : keys) topologies[key.topology].push_back(key);
  std::string page;
  for (const ConfigClaim& claim : ConfigClaims()) page += Section(claim, topologies);
  page += "### The mix of calls alone tells the stage\n\n";
  if (structure_json.empty()) {
    page += "Not judged here: no result of `dynamiccl-lab-agents structure` was given (`--structure`).\n\n";
  } else {
    DYNAMICCL_TRY(const std::string rows, StageRows(structure_json));
    page +=
        "A random forest on the histogram of the last 64 calls; macro F1 of the stage.\n\n| split | F1 "
        "|\n|---|---|\n" +
        rows + "\n";
  }
  page +=
      "### The gather after the step is not latency-critical; falling memory pressure announces larger "
      "messages\n\nSweeps cannot tell: neither what a call's delay costs its step nor the memory of the job "
      "is in "
      "them.\n";
  return page;
}

}  // namespace dynamiccl::agents
