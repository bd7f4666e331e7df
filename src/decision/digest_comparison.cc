// SPDX-License-Identifier: Apache-2.0
// For each call number, the ranks are grouped by the digest they reported. FindDivergence looks at call
// numbers in rising order, so the first difference that it finds lies after the last call number at which all
// ranks agreed.
#include "src/decision/digest_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace dynamiccl {
namespace {

// The most call numbers that are kept, to limit the memory on the leader of a large job. Ranks that report at
// different times report different call numbers.
constexpr size_t kMaxOpen = 64;
// A message names at most this many ranks: a line that names every rank of a large job would be unreadable.
constexpr size_t kNamedRanks = 8;

}  // namespace

std::string Describe(const Divergence& divergence, const std::vector<int>& names) {
  std::string ranks;
  for (const int rank : divergence.ranks)
    ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", names[static_cast<size_t>(rank)]);
  if (divergence.n_ranks > divergence.ranks.size())
    ranks += fmt::format(" and {} more", divergence.n_ranks - divergence.ranks.size());
  return fmt::format("{} {} decided {} in calls {} to {}", divergence.n_ranks == 1 ? "rank" : "ranks", ranks,
                     divergence.from_most ? "otherwise than most ranks" : "differently", divergence.from,
                     divergence.until - 1);
}

void DigestComparison::AddReport(int rank, const DigestCheckpoint& checkpoint, int64_t now_ns) {
  const auto index = static_cast<size_t>(rank);
  if (checkpoint.call <= agreed_until_ || index >= n_ranks_) return;
  const auto [found, created] = open_.try_emplace(checkpoint.call);
  ReportedDigests& reports = found->second;
  if (created) reports.reported.resize(n_ranks_);
  if (!reports.reported[index]) {
    reports.reported[index] = true;
    ++reports.n_reported;
    MatchingRanks& alike = reports.by_digest[checkpoint.digest];
    // This is the first digest that differs from the others at this call number.
    if (reports.by_digest.size() == 2 && alike.n_ranks == 0) reports.differ_ns = now_ns;
    if (++alike.n_ranks <= kNamedRanks) alike.first.push_back(rank);
  }
  if (open_.size() > kMaxOpen) DropRarestReport();
}

void DigestComparison::DropRarestReport() {
  const auto least = std::min_element(open_.begin(), open_.end(), [](const auto& a, const auto& b) {
    return std::countr_zero(a.first) < std::countr_zero(b.first);
  });
  open_.erase(least);
}

std::optional<Divergence> DigestComparison::FindDivergence(int64_t now_ns) {
  for (const auto& [call, reports] : open_) {
    const bool all = reports.n_reported == n_ranks_;
    const bool differ = reports.by_digest.size() > 1;
    if (differ && (all || now_ns >= reports.differ_ns + kDigestPatienceNs)) return Between(call, reports);
    // A digest covers all calls before it, so reports about earlier call numbers are no longer needed.
    if (all && !differ) agreed_until_ = call;
  }
  open_.erase(open_.begin(), open_.upper_bound(agreed_until_));
  return std::nullopt;
}

Divergence DigestComparison::Between(uint64_t until, const ReportedDigests& reports) const {
  const auto most =
      std::max_element(reports.by_digest.begin(), reports.by_digest.end(),
                       [](const auto& a, const auto& b) { return a.second.n_ranks < b.second.n_ranks; });
  Divergence divergence{agreed_until_, until, {}, 0, 2 * most->second.n_ranks > reports.n_reported};
  for (auto alike = reports.by_digest.begin(); alike != reports.by_digest.end(); ++alike) {
    if (divergence.from_most && alike == most) continue;
    const auto& first = alike->second.first;
    divergence.ranks.insert(divergence.ranks.end(), first.begin(), first.end());
    divergence.n_ranks += alike->second.n_ranks;
  }
  std::sort(divergence.ranks.begin(), divergence.ranks.end());
  if (divergence.ranks.size() > kNamedRanks) divergence.ranks.resize(kNamedRanks);
  return divergence;
}

}  // namespace dynamiccl
