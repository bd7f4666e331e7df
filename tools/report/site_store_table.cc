// SPDX-License-Identifier: Apache-2.0
// Formats the confirmed choices and the findings of a site store.
#include "tools/report/site_store_table.h"

#include <fmt/ranges.h>

#include <cmath>
#include <vector>

#include "src/base/sha256.h"
#include "tools/report/choice_comparison.h"

namespace dynamiccl {
namespace {

constexpr double kSecondsPerDay = 24 * 3600;

// Returns the time of the confirmed config divided by the time of NCCL's choice. The store holds the base-2
// logarithm of this ratio in units of 1/65536.
double Ratio(const Confirmed& confirmed) {
  return std::exp2(confirmed.log2_ratio / 65536.0);
}
double AgeDays(int64_t learnt_s, int64_t now_s) {
  return static_cast<double>(now_s - learnt_s) / kSecondsPerDay;
}

const char* RegimeName(Regime regime) {
  constexpr const char* kNames[] = {"normal", "congested", "degraded link", "straggler"};
  return kNames[static_cast<size_t>(regime)];
}

// NCCL's version code as text: 23007 is 2.30.7.
std::string NcclVersionText(uint32_t code) {
  return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

const char* ChannelsName(ChannelCount channels) {
  constexpr const char* kNames[] = {"one channel", "few channels", "many channels"};
  return kNames[static_cast<size_t>(channels)];
}

// The names of the collectives that the job of a finding calls.
std::vector<std::string_view> CollectivesOf(const FindingKey& key) {
  std::vector<std::string_view> names;
  for (int collective = 0; collective < kTunableCollectives; ++collective) {
    if ((key.collectives >> collective & 1) != 0) names.push_back(Name(static_cast<Collective>(collective)));
  }
  return names;
}

std::string ConfigName(const FindingKey& key) {
  if (key.algorithm == Algorithm::kUndefined) return "NCCL's choice";
  return fmt::format("{}/{} {}", Name(key.algorithm), Name(key.protocol), ChannelsName(key.channels));
}

// Lists the findings of a site store, one line each: by how much a config changed the steps of a job. Empty
// if the store has none.
std::string FindingsAsText(const SiteStore& store, int64_t now_s) {
  if (store.findings().empty()) return "";
  std::string text = fmt::format(
      "\nFindings about steps, all large calls with one config against NCCL's choice: {}\n\n"
      "{:<10} {:<8} {:>5} {:>5}  {:<28} {:>8} {:>7}  {:<26} {:>16} {:>5}  {}\n",
      store.findings().size(), "fabric", "NCCL", "ranks", "nodes", "collectives", "slowness", "share",
      "config", "step", "steps", "age");
  for (const auto& [key, finding] : store.findings()) {
    text += fmt::format(
        "{:<10} {:<8} {:>5} {:>5}  {:<28} {:>7.1f}x {:>5.0f} %  {:<26} {:>+6.1f} +- {:>4.1f} % {:>5}  {:.0f} "
        "d{}\n",
        ToHex(std::span(key.place.fabric).first(4)), NcclVersionText(key.place.nccl_version),
        key.place.n_ranks, key.place.n_nodes, fmt::format("{}", fmt::join(CollectivesOf(key), " ")),
        std::exp2(finding.circumstances.slowness), 100 * finding.circumstances.share, ConfigName(key),
        100 * finding.effect, 100 * finding.error, finding.steps, AgeDays(finding.found_s, now_s),
        IsTrusted(finding.found_s, now_s) ? "" : ", not used");
  }
  return text;
}

Json FindingsAsJson(const SiteStore& store, int64_t now_s) {
  Json rows = Json::array();
  for (const auto& [key, finding] : store.findings()) {
    rows.push_back({{"fabric", ToHex(key.place.fabric)},
                    {"nccl_version", NcclVersionText(key.place.nccl_version)},
                    {"ranks", key.place.n_ranks},
                    {"nodes", key.place.n_nodes},
                    {"collectives", CollectivesOf(key)},
                    {"algorithm", Name(key.algorithm)},
                    {"protocol", Name(key.protocol)},
                    {"channels", ChannelsName(key.channels)},
                    {"slowness", std::exp2(finding.circumstances.slowness)},
                    {"share_of_step", finding.circumstances.share},
                    {"effect", finding.effect},
                    {"error", finding.error},
                    {"steps", finding.steps},
                    {"age_days", AgeDays(finding.found_s, now_s)},
                    {"used", IsTrusted(finding.found_s, now_s)}});
  }
  return rows;
}

}  // namespace

std::string SiteStoreAsText(const SiteStore& store, int64_t now_s) {
  std::string text = fmt::format(
      "{} entries\n\n{:<10} {:<8} {:>5} {:>5}  {:<14} {:>16}  {:<18} {:<13} {:<20} {:>7} {:>6} {:>5}  {}\n",
      store.entries().size(), "fabric", "NCCL", "ranks", "nodes", "collective", "bytes", "role", "regime",
      "best", "time", "pairs", "runs", "age");
  for (const auto& [key, confirmed] : store.entries()) {
    const bool used = store.Known(key, now_s).has_value();
    text += fmt::format(
        "{:<10} {:<8} {:>5} {:>5}  {:<14} {:>16}  {:<18} {:<13} {:<20} {:>+5.0f} % {:>6} {:>5}  {:.0f} d{}\n",
        ToHex(std::span(key.place.fabric).first(4)), NcclVersionText(key.place.nccl_version),
        key.place.n_ranks, key.place.n_nodes, Name(key.key.collective), Name(key.key.size_class),
        Name(key.key.role), RegimeName(key.regime), Name(confirmed.config), 100 * (Ratio(confirmed) - 1),
        confirmed.pairs, confirmed.runs, AgeDays(confirmed.confirmed_s, now_s),
        used ? "" : ", not used: tried again");
  }
  return text + FindingsAsText(store, now_s);
}

Json SiteStoreAsJson(const SiteStore& store, int64_t now_s) {
  Json rows = Json::array();
  for (const auto& [key, confirmed] : store.entries()) {
    rows.push_back({{"fabric", ToHex(key.place.fabric)},
                    {"nccl_version", NcclVersionText(key.place.nccl_version)},
                    {"ranks", key.place.n_ranks},
                    {"nodes", key.place.n_nodes},
                    {"collective", Name(key.key.collective)},
                    {"bytes_from", LowerBound(key.key.size_class)},
                    {"role", Name(key.key.role)},
                    {"regime", RegimeName(key.regime)},
                    {"best", Name(confirmed.config)},
                    {"time_ratio", Ratio(confirmed)},
                    {"pairs", confirmed.pairs},
                    {"runs", confirmed.runs},
                    {"age_days", AgeDays(confirmed.confirmed_s, now_s)},
                    {"used", store.Known(key, now_s).has_value()}});
  }
  return {{"schema", 1}, {"entries", rows}, {"findings", FindingsAsJson(store, now_s)}};
}

}  // namespace dynamiccl
