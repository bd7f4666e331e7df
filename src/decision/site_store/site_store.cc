// SPDX-License-Identifier: Apache-2.0
// Merging and ageing of entries. Counters saturate and ages are checked for overflow, because a file may hold
// any number.
#include "src/decision/site_store/site_store.h"

#include <algorithm>
#include <limits>

namespace dynamiccl {
namespace {

// An entry may be this many seconds in the future; more means that a clock was set back.
constexpr int64_t kDay = 24 * 3600;

uint32_t SaturatingSum(uint32_t a, uint32_t b) {
  return a > std::numeric_limits<uint32_t>::max() - b ? std::numeric_limits<uint32_t>::max() : a + b;
}

// Returns the mean of both ratios, weighted by their pairs; each weight is at least 1.
int32_t MeanRatio(const Confirmed& a, const Confirmed& b) {
  const int64_t a_pairs = std::max<uint32_t>(a.pairs, 1);
  const int64_t b_pairs = std::max<uint32_t>(b.pairs, 1);
  return static_cast<int32_t>((a.log2_ratio * a_pairs + b.log2_ratio * b_pairs) / (a_pairs + b_pairs));
}

// Returns the seconds since an entry was confirmed; below 0 if the confirming clock was ahead.
int64_t AgeAt(int64_t now_s, const Confirmed& confirmed) {
  int64_t age_s = 0;
  if (!__builtin_sub_overflow(now_s, confirmed.confirmed_s, &age_s)) return age_s;
  return confirmed.confirmed_s > now_s ? std::numeric_limits<int64_t>::min()
                                       : std::numeric_limits<int64_t>::max();
}

}  // namespace

void SiteStore::Learn(const SiteKey& key, const Confirmed& confirmed) {
  const auto [entry, is_new] = entries_.try_emplace(key, confirmed);
  if (is_new) return;
  Confirmed& known = entry->second;
  if (known.config != confirmed.config) {
    if (confirmed.confirmed_s >= known.confirmed_s) known = confirmed;
    return;
  }
  known.log2_ratio = MeanRatio(known, confirmed);
  known.pairs = SaturatingSum(known.pairs, confirmed.pairs);
  known.runs = SaturatingSum(known.runs, confirmed.runs);
  known.confirmed_s = std::max(known.confirmed_s, confirmed.confirmed_s);
}

std::optional<Confirmed> SiteStore::Known(const SiteKey& key, int64_t now_s) const {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return std::nullopt;
  const int64_t age_s = AgeAt(now_s, found->second);
  if (age_s > kTrustedSeconds || age_s < -kDay) return std::nullopt;
  return found->second;
}

void SiteStore::Age(int64_t now_s) {
  // Entries from the future are dropped too: they would never be trusted and never be forgotten.
  std::erase_if(entries_, [=](const auto& entry) {
    const int64_t age_s = AgeAt(now_s, entry.second);
    return age_s > kForgottenSeconds || age_s < -kDay;
  });
  if (entries_.size() <= kMaxSiteEntries) return;
  std::vector<int64_t> times;
  for (const auto& [key, confirmed] : entries_) times.push_back(confirmed.confirmed_s);
  const auto oldest_kept = times.begin() + static_cast<std::ptrdiff_t>(kMaxSiteEntries - 1);
  std::nth_element(times.begin(), oldest_kept, times.end(), std::greater<>());
  const int64_t border = *oldest_kept;
  size_t left_out = 0;
  const size_t too_many = entries_.size() - kMaxSiteEntries;
  std::erase_if(entries_,
                [&](const auto& entry) { return entry.second.confirmed_s < border && ++left_out > 0; });
  // If too many entries remain, drops any of those confirmed in the same second as the oldest kept one.
  std::erase_if(entries_, [&](const auto& entry) {
    return left_out < too_many && entry.second.confirmed_s == border && ++left_out > 0;
  });
}

}  // namespace dynamiccl
