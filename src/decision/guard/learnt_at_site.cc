// SPDX-License-Identifier: Apache-2.0
// Ratios are stored as log2 in units of 1/65536 (docs/formats/site_store.md).
#include "src/decision/guard/learnt_at_site.h"

#include <cmath>

namespace dynamiccl {
namespace {

// An earlier run's choice counts as confirmed again after this many pairs with samples of NCCL's choice. A
// new winner needs as many pairs.
constexpr uint32_t kPairsThatConfirm = 5;

int32_t Log2Ratio(const SettledKey& settled) {
  return static_cast<int32_t>(std::lround(std::log2(settled.ratio.value_or(1)) * 65536));
}

}  // namespace

SiteStore LearntAtSite(const Guard& guard, const SitePlace& place, int64_t now_s) {
  SiteStore learnt;
  for (const SettledKey& settled : guard.AllSettled()) {
    // A key that was left to NCCL has no samples that could confirm it again.
    if (settled.by_earlier_run && settled.pairs < kPairsThatConfirm) continue;
    learnt.Learn({place, settled.key, settled.fabric},
                 {settled.choice, Log2Ratio(settled), settled.pairs, 1, now_s});
  }
  for (auto [key, finding] : guard.Findings()) {
    key.place = place;
    finding.found_s = now_s;
    learnt.Learn(key, finding);
  }
  return learnt;
}

std::optional<CollectiveConfig> ConfirmedAtSite(const SiteStore& store, const SitePlace& place,
                                                const TableKey& key, Regime regime, int64_t now_s) {
  const auto known = store.Known({place, key, regime}, now_s);
  return known ? std::optional(known->config) : std::nullopt;
}

}  // namespace dynamiccl
