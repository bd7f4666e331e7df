// SPDX-License-Identifier: Apache-2.0
// Merges entries of a site store and drops old ones. Counters saturate and ages are checked for overflow,
// because a file may hold any number.
#include "src/decision/site_store/site_store.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dynamiccl {
namespace {

// An entry may lie this many seconds in the future. If it lies further ahead, a clock was set back.
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

int64_t LearntAt(const Confirmed& confirmed) {
  return confirmed.confirmed_s;
}
int64_t LearntAt(const StepFinding& finding) {
  return finding.found_s;
}

// Returns the seconds since an entry was learnt; below 0 if the clock was ahead when the entry was learnt.
int64_t AgeAt(int64_t now_s, int64_t learnt_s) {
  int64_t age_s = 0;
  if (!__builtin_sub_overflow(now_s, learnt_s, &age_s)) return age_s;
  return learnt_s > now_s ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
}

// Drops entries that are too old, and then the oldest ones until `most` remain. Entries from the future are
// dropped too: they would never be trusted and never be forgotten.
template <class Entries>
void DropOld(Entries& entries, int64_t now_s, size_t most) {
  std::erase_if(entries, [=](const auto& entry) {
    const int64_t age_s = AgeAt(now_s, LearntAt(entry.second));
    return age_s > kForgottenSeconds || age_s < -kDay;
  });
  if (entries.size() <= most) return;
  std::vector<int64_t> times;
  for (const auto& [key, learnt] : entries) times.push_back(LearntAt(learnt));
  const auto oldest_kept = times.begin() + static_cast<std::ptrdiff_t>(most - 1);
  std::nth_element(times.begin(), oldest_kept, times.end(), std::greater<>());
  const int64_t border = *oldest_kept;
  size_t left_out = 0;
  const size_t too_many = entries.size() - most;
  std::erase_if(entries,
                [&](const auto& entry) { return LearntAt(entry.second) < border && ++left_out > 0; });
  // If still too many remain, drops some of those that were learnt in the same second as the oldest kept one.
  std::erase_if(entries, [&](const auto& entry) {
    return left_out < too_many && LearntAt(entry.second) == border && ++left_out > 0;
  });
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

void SiteStore::Learn(FindingKey key, const StepFinding& finding) {
  key.octave = static_cast<int8_t>(std::lround(std::clamp(finding.circumstances.slowness, -99.0, 99.0)));
  const auto [known, is_new] = findings_.try_emplace(key, finding);
  if (!is_new && finding.found_s >= known->second.found_s) known->second = finding;
}

void SiteStore::Learn(const SiteStore& other) {
  for (const auto& [key, confirmed] : other.entries_) Learn(key, confirmed);
  for (const auto& [key, finding] : other.findings_) Learn(key, finding);
}

std::optional<Confirmed> SiteStore::Known(const SiteKey& key, int64_t now_s) const {
  const auto found = entries_.find(key);
  if (found == entries_.end() || !IsTrusted(found->second.confirmed_s, now_s)) return std::nullopt;
  return found->second;
}

void SiteStore::Age(int64_t now_s) {
  DropOld(entries_, now_s, kMaxSiteEntries);
  DropOld(findings_, now_s, kMaxFindings);
}

bool IsTrusted(int64_t learnt_s, int64_t now_s) {
  const int64_t age_s = AgeAt(now_s, learnt_s);
  return age_s <= kTrustedSeconds && age_s >= -kDay;
}

}  // namespace dynamiccl
