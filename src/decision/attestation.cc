// SPDX-License-Identifier: Apache-2.0
// Each pledge is compared with an earlier one. The first difference at once ends the vote with a no, and the
// last of n_ranks equal pledges ends it with a yes.
#include "src/decision/attestation.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace dynamiccl {
namespace {

struct Row {
  std::string AttestedValues::*member;
  const char* sentence;
};

constexpr Row kRows[] = {
#define DYNAMICCL_ATTESTED_ROW(name, sentence) {&AttestedValues::name, sentence},
    DYNAMICCL_ATTESTED_VALUES(DYNAMICCL_ATTESTED_ROW)
#undef DYNAMICCL_ATTESTED_ROW
};

// A message names at most this many ranks: a line that names every rank of a large job would be unreadable.
constexpr size_t kNamedRanks = 8;

// Returns the value as messages print it: at most 128 characters, "none" for an empty value.
std::string Shown(const std::string& value) {
  return value.empty() ? "none" : value.substr(0, 128);
}

}  // namespace

std::string DescribeDifference(int rank_a, const AttestedValues& a, int rank_b, const AttestedValues& b) {
  for (const Row& row : kRows) {
    if (a.*row.member != b.*row.member) {
      return fmt::format("{}: {} on rank {}, {} on rank {}", row.sentence, Shown(a.*row.member), rank_a,
                         Shown(b.*row.member), rank_b);
    }
  }
  return {};
}

void Attestation::Pledge(int member, int n_ranks, const AttestedValues& values) {
  if (verdict_) return;
  if (n_ranks != n_ranks_)
    return Refuse(fmt::format("rank {} has {} ranks, others {}", member, n_ranks, n_ranks_));
  if (!pledged_.empty()) {
    const auto& [first, expected] = *pledged_.begin();
    const std::string difference = DescribeDifference(first, expected, member, values);
    if (!difference.empty()) return Refuse(difference);
  }
  pledged_.emplace(member, values);
  if (pledged_.size() < static_cast<size_t>(n_ranks_)) return;
  if (leader_missing_) return Refuse("the process that made the unique id is no rank of the communicator");
  verdict_ = Verdict{.agreed = true};
  pledged_.clear();
}

void Attestation::Decline(int member, const std::string& why) {
  if (!verdict_) Refuse(fmt::format("rank {} takes no part: {}", member, why));
}

void Attestation::Expire() {
  if (verdict_) return;
  Refuse(fmt::format("{} of {} ranks pledged in time; {}", pledged_.size(), n_ranks_, NamedRanks()), true);
}

void Attestation::EndAs(const Verdict& earlier) {
  if (!verdict_) Refuse(earlier.reason, earlier.timed_out);
}

void Attestation::Refuse(std::string reason, bool timed_out) {
  verdict_ = Verdict{false, timed_out, std::move(reason)};
  pledged_.clear();
}

std::string Attestation::NamedRanks() const {
  std::vector<int> ranks;
  if (members_are_known_) {
    for (int rank = 0; rank < n_ranks_; ++rank)
      if (!pledged_.contains(rank)) ranks.push_back(rank);
  } else {
    for (const auto& [member, values] : pledged_) ranks.push_back(member);
  }
  const size_t named = std::min(ranks.size(), kNamedRanks);
  std::string names =
      fmt::format("{}", fmt::join(ranks.begin(), ranks.begin() + static_cast<ptrdiff_t>(named), " "));
  if (ranks.size() > named) names += fmt::format(" and {} more", ranks.size() - named);
  if (members_are_known_) return "missing " + names;
  return fmt::format("present {} (in a split communicator, by the parent's ranks)",
                     ranks.empty() ? "none" : names);
}

}  // namespace dynamiccl
