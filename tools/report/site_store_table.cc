// SPDX-License-Identifier: Apache-2.0
// Formats the entries of a site store.
#include "tools/report/site_store_table.h"

#include <cmath>

#include "src/base/sha256.h"
#include "tools/report/choice_comparison.h"

namespace dynamiccl {
namespace {

constexpr double kSecondsPerDay = 24 * 3600;

// Time of the confirmed config over NCCL's. The store holds its base-2 logarithm in units of 1/65536.
double Ratio(const Confirmed& confirmed) {
  return std::exp2(confirmed.log2_ratio / 65536.0);
}
double AgeDays(const Confirmed& confirmed, int64_t now_s) {
  return static_cast<double>(now_s - confirmed.confirmed_s) / kSecondsPerDay;
}

const char* RegimeName(Regime regime) {
  constexpr const char* kNames[] = {"normal", "congested", "degraded link", "straggler"};
  return kNames[static_cast<size_t>(regime)];
}

// NCCL's version code as text: 23007 is 2.30.7.
std::string NcclVersionText(uint32_t code) {
  return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
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
        confirmed.pairs, confirmed.runs, AgeDays(confirmed, now_s), used ? "" : ", not used: tried again");
  }
  return text;
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
                    {"age_days", AgeDays(confirmed, now_s)},
                    {"used", store.Known(key, now_s).has_value()}});
  }
  return {{"schema", 1}, {"entries", rows}};
}

}  // namespace dynamiccl
