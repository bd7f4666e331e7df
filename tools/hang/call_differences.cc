// SPDX-License-Identifier: Apache-2.0
// Groups the ranks by the call that they issued at each place (call number, index in the group). At the first
// place with two groups, the following calls show what went wrong: one rank left a call out, issued an extra
// one, swapped two, or issued a different call.
#include "tools/hang/hang_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "src/collective/size_class.h"

namespace dynamiccl {
namespace {

// Number of calls after a difference that are compared. They show whether a call is missing or only
// different.
constexpr size_t kLookahead = 8;

using Place = std::pair<uint64_t, uint16_t>;  // call number, index in group

Place PlaceOf(const JobCall& call) {
  return {call.call.call_number, call.call.index_in_group};
}

// The fields in which ranks must be equal. The size of a group is compared separately: a call that has not
// returned shows the size of its whole group, including sends and receives.
auto Shape(const JobCall& call) {
  const CollectiveCall& c = call.call;
  return std::tuple(c.collective, c.data_type, c.op, c.bytes, call.root_or_peer);
}

// Compares the sizes of groups where both are known.
bool GroupsDiffer(const JobCall& a, const JobCall& b) {
  return a.returned && b.returned && a.call.group_size != b.call.group_size;
}

// The ranks that issued the same call at one place, and that call.
struct Party {
  const JobCall* call = nullptr;
  std::vector<int32_t> ranks;
};

bool Alike(const JobCall& a, const JobCall& b) {
  return Shape(a) == Shape(b) && !GroupsDiffer(a, b);
}

using Alikeness = bool (*)(const JobCall&, const JobCall&);

// What one rank issued at a place.
struct RankCall {
  int32_t rank = 0;
  const JobCall* call = nullptr;
};

// Visits the places at which ranks of a communicator issued calls, in program order. Each rank's calls are
// read once from front to back, because a job has millions of them.
class PlaceWalk {
 public:
  explicit PlaceWalk(const JobCommunicator& communicator) {
    for (const auto& [rank, member] : communicator.members) {
      const std::vector<JobCall>& calls = member.collectives;
      if (!calls.empty()) left_.push_back({rank, calls.data(), calls.data() + calls.size()});
    }
  }

  // Moves to the first, or to the next place. Returns false behind the last one.
  bool Next() {
    here_.clear();
    if (left_.empty()) return false;
    place_ = PlaceOf(*left_.front().next);
    for (const Rest& rest : left_) place_ = std::min(place_, PlaceOf(*rest.next));
    for (Rest& rest : left_) {
      if (PlaceOf(*rest.next) != place_) continue;
      here_.push_back({rest.rank, rest.next});
      while (rest.next != rest.end && PlaceOf(*rest.next) == place_) ++rest.next;
    }
    std::erase_if(left_, [](const Rest& rest) { return rest.next == rest.end; });
    return true;
  }

  Place place() const { return place_; }
  // The ranks that issued a call here, in ascending order.
  std::span<const RankCall> here() const { return here_; }

 private:
  // The calls of one rank that were not visited yet.
  struct Rest {
    int32_t rank;
    const JobCall* next;
    const JobCall* end;
  };

  std::vector<Rest> left_;
  Place place_;
  std::vector<RankCall> here_;
};

// Groups ranks by the call that they issued at one place; only calls that `counts` accepts are used. The
// largest group comes first and is taken to be right. Of two equally large groups, the one with the lowest
// rank comes first.
std::vector<Party> PartiesOf(std::span<const RankCall> calls, bool (*counts)(const JobCall&),
                             Alikeness alike) {
  std::vector<Party> parties;
  for (const auto& [rank, call] : calls) {
    if (!counts(*call)) continue;
    const auto found = std::find_if(parties.begin(), parties.end(),
                                    [&](const Party& party) { return alike(*party.call, *call); });
    if (found == parties.end())
      parties.push_back({call, {rank}});
    else
      found->ranks.push_back(rank);
  }
  // The sort is stable, so that among equally large parties the one with the lowest rank stays first.
  std::stable_sort(parties.begin(), parties.end(),
                   [](const Party& a, const Party& b) { return a.ranks.size() > b.ranks.size(); });
  return parties;
}

size_t RanksOf(const std::vector<Party>& parties) {
  size_t ranks = 0;
  for (const Party& party : parties) ranks += party.ranks.size();
  return ranks;
}

// Returns the ranks of all groups except the largest. The ranks of a group (`Party`) issued the same call.
std::vector<int32_t> OddRanks(const std::vector<Party>& parties) {
  std::vector<int32_t> odd;
  for (size_t i = 1; i < parties.size(); ++i)
    odd.insert(odd.end(), parties[i].ranks.begin(), parties[i].ranks.end());
  return odd;
}

// Returns the calls that one rank issued from `place` on, at most kLookahead + 1 of them.
std::span<const JobCall> From(const JobMember& member, Place place) {
  const auto begin = std::find_if(member.collectives.begin(), member.collectives.end(),
                                  [&](const JobCall& call) { return PlaceOf(call) >= place; });
  const auto count = std::min<size_t>(kLookahead + 1, static_cast<size_t>(member.collectives.end() - begin));
  return {member.collectives.data() + (begin - member.collectives.begin()), count};
}

// True if the calls are equal once the first `skip` calls of `a` are left out. At least one call must be
// compared.
bool AlikeWithout(size_t skip, std::span<const JobCall> a, std::span<const JobCall> b) {
  if (a.size() <= skip || b.empty()) return false;
  const size_t count = std::min(a.size() - skip, b.size());
  for (size_t i = 0; i < count; ++i) {
    if (Shape(a[i + skip]) != Shape(b[i])) return false;
  }
  return true;
}

// Tells which mistake the smaller group of ranks made, by comparing the calls that both groups issued from
// the differing call on.
HangKind KindOf(std::span<const JobCall> usual, std::span<const JobCall> odd) {
  const bool two = usual.size() > 1 && odd.size() > 1;
  if (two && Shape(usual[0]) == Shape(odd[1]) && Shape(usual[1]) == Shape(odd[0]))
    return HangKind::kSwappedCalls;
  if (AlikeWithout(1, usual, odd)) return HangKind::kSkippedCall;
  if (AlikeWithout(1, odd, usual)) return HangKind::kExtraCall;
  return HangKind::kMismatch;
}

// The differing fields, for example "size, type".
std::string WhatDiffers(const JobCall& a, const JobCall& b) {
  std::vector<std::string> parts;
  const CollectiveCall& x = a.call;
  const CollectiveCall& y = b.call;
  if (x.collective != y.collective) parts.emplace_back("operation");
  if (x.bytes != y.bytes) parts.emplace_back("size");
  if (x.data_type != y.data_type) parts.emplace_back("type");
  if (x.op != y.op) parts.emplace_back("reduction");
  if (a.root_or_peer != b.root_or_peer) parts.emplace_back("root");
  if (GroupsDiffer(a, b)) parts.emplace_back("number of calls in the group");
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string Sentence(HangKind kind, const Party& usual, const Party& odd, uint64_t call_number) {
  const std::string ranks = RankList(odd.ranks);
  switch (kind) {
    case HangKind::kSkippedCall:
      return fmt::format("{} left out call {}: {}", ranks, call_number, Describe(*usual.call));
    case HangKind::kExtraCall:
      return fmt::format("{} issued a call more, at call {}: {}", ranks, call_number, Describe(*odd.call));
    case HangKind::kSwappedCalls:
      return fmt::format("{} issued calls {} and {} in the other order", ranks, call_number, call_number + 1);
    default:
      return fmt::format("{} issued another call {}: unlike in {}", ranks, call_number,
                         WhatDiffers(*usual.call, *odd.call));
  }
}

HangFinding FindingOf(uint64_t id, const JobCommunicator& communicator, Place place,
                      const std::vector<Party>& parties) {
  const Party& usual = parties[0];
  const Party& odd = parties[1];
  HangFinding finding;
  finding.communicator = id;
  finding.call_number = place.first;
  finding.kind = KindOf(From(communicator.members.at(usual.ranks.front()), place),
                        From(communicator.members.at(odd.ranks.front()), place));
  finding.ranks = OddRanks(parties);
  finding.text.push_back(Sentence(finding.kind, usual, odd, place.first));
  for (const Party& party : parties)
    finding.text.push_back(fmt::format("{}: {}", RankList(party.ranks), Describe(*party.call)));
  return finding;
}

std::string DecisionText(const JobCall& call) {
  if (call.decision.leaves_nccl_alone()) return "NCCL's own choice";
  return fmt::format("{} with {} and {} channels", Name(call.decision.algorithm),
                     Name(call.decision.protocol), call.decision.channels);
}

}  // namespace

std::string Describe(const JobCall& call) {
  const CollectiveCall& c = call.call;
  std::string text = fmt::format("{} of {}, {}", Name(c.collective), FormatBytes(c.bytes), Name(c.data_type));
  if (Reduces(c.collective)) text += fmt::format(", {}", Name(c.op));
  if (call.root_or_peer >= 0)
    text +=
        fmt::format(", {} {}", c.collective >= Collective::kSendRecv ? "peer" : "root", call.root_or_peer);
  return text;
}

std::optional<HangFinding> FirstUnlikeCall(uint64_t id, const JobCommunicator& communicator,
                                           uint64_t& compared) {
  for (PlaceWalk walk(communicator); walk.Next();) {
    if (walk.here().size() < 2) continue;
    ++compared;
    const std::vector<Party> parties = PartiesOf(
        walk.here(), [](const JobCall&) { return true; }, Alike);
    if (parties.size() > 1) return FindingOf(id, communicator, walk.place(), parties);
  }
  return std::nullopt;
}

std::optional<HangFinding> FirstUnlikeDecision(uint64_t id, const JobCommunicator& communicator,
                                               uint64_t& compared) {
  const auto decided = [](const JobCall& call) { return call.decided; };
  const auto alike = [](const JobCall& a, const JobCall& b) { return a.decision == b.decision; };
  for (PlaceWalk walk(communicator); walk.Next();) {
    const std::vector<Party> parties = PartiesOf(walk.here(), decided, alike);
    if (RanksOf(parties) >= 2) ++compared;
    if (parties.size() < 2) continue;
    HangFinding finding{HangKind::kDecisionsDiffer, id, walk.place().first, OddRanks(parties), {}};
    finding.text.push_back(fmt::format("tuners chose unlike for call {}, {}", walk.place().first,
                                       Describe(*parties.front().call)));
    for (const Party& party : parties)
      finding.text.push_back(fmt::format("{}: {}", RankList(party.ranks), DecisionText(*party.call)));
    return finding;
  }
  return std::nullopt;
}

}  // namespace dynamiccl
