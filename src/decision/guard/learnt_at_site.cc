// SPDX-License-Identifier: Apache-2.0
#include "src/decision/guard/learnt_at_site.h"

#include <cmath>

namespace dynamiccl {
namespace {

// So many pairs with NCCL's samples confirm an earlier run's choice once more.
constexpr uint32_t kPairsThatConfirm = 5;

int32_t Log2Ratio(const GuardedKey& key) {
  return static_cast<int32_t>(std::lround(std::log2(key.Ratio().value_or(1)) * 65536));
}

}  // namespace

SiteStore LearntAtSite(const Guard& guard, const SitePlace& place, int64_t now_s) {
  SiteStore learnt;
  for (const auto& [code, key] : guard.keys()) {
    const auto earlier = guard.SettledByEarlierRun(key.key());
    if (!earlier || key.captured()) continue;
    // What was left to NCCL then has no samples to say so again.
    if (*earlier && key.pairs() < kPairsThatConfirm) continue;
    learnt.Learn({place, key.key(), guard.fabric()}, {key.choice(), Log2Ratio(key), key.pairs(), 1, now_s});
  }
  return learnt;
}

std::optional<CollectiveConfig> ConfirmedAtSite(const SiteStore& store, const SitePlace& place,
                                                const TableKey& key, Regime regime, int64_t now_s) {
  const auto known = store.Known({place, key, regime}, now_s);
  return known ? std::optional(known->config) : std::nullopt;
}

}  // namespace dynamiccl
