// SPDX-License-Identifier: Apache-2.0
// Explores every order of events of the shipped classes in small cases. Ranks attest each other, exchange
// masks and decide over a network that delays, loses, repeats and reorders. The leader may expire a vote or
// die at any time. Every state must show agreement, and all ranks must still be able to reach their end.
#include <gtest/gtest.h>
#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/decision/attestation.h"
#include "src/decision/mask_agreement.h"
#include "tests/src/decision/switching/explored_states.h"
#include "tests/src/decision/votes/wrong_voting_members.h"

namespace dynamiccl::testing {
namespace {

constexpr size_t kMaxRanks = 3;
// All calls have one situation. The first call pledges and the second takes the verdict. If a rank was late,
// the fourth call pledges again and the fifth takes that verdict.
constexpr size_t kMaxCalls = 5;
// One vote is about the communicator. The others are the attempts about the situation.
constexpr size_t kVotes = 3;

struct ExploredCase {
  size_t n_ranks = 2;
  size_t calls = kMaxCalls;
  bool attested = false;      // True if the ranks are attested from the beginning.
  bool leader_apart = false;  // The leader is in another process than rank 0, as for a child of a split.
  bool leader_may_die = false;
  uint64_t unlike_call = ~uint64_t{0};  // The call at which NCCL offers another mask to rank 1.
};

enum class Said : uint8_t { kYes, kUnequal, kLate };
constexpr size_t kSaid = 3;

Verdict VerdictOf(Said said) {
  return {said == Said::kYes, said == Said::kLate, {}};
}
Said SaidBy(const Verdict& verdict) {
  return verdict.agreed ? Said::kYes : verdict.timed_out ? Said::kLate : Said::kUnequal;
}

// The state of one rank in one vote.
template <class Member>
struct Part {
  bool begun = false;
  uint64_t call_number = 0;
  uint64_t mask = 0;
  Member member;
};

template <class Member>
struct VoteRank {
  bool attested = false;  // True once the rank knows whether it is attested.
  bool uses_table = false;
  bool dead = false;
  uint64_t calls = 0;
  std::array<Part<Member>, kVotes> parts;
};

// The leader's state of one vote.
struct Hosted {
  explicit Hosted(int n_ranks) : attestation(n_ranks) {}
  Attestation attestation;
  uint32_t pledged = 0;  // The ranks that have pledged, one bit each.
  uint32_t asked = 0;    // Of these, the ranks without an answer.
};

template <class Member>
struct VotesState {
  std::array<VoteRank<Member>, kMaxRanks> ranks;
  std::array<std::optional<Hosted>, kVotes> hosted;
  // Messages on their way, one bit each. Pledges have a bit by vote and rank, verdicts by vote, rank and
  // answer.
  uint32_t pledges = 0;
  uint64_t verdicts = 0;
  std::array<uint64_t, kMaxCalls> decided{};  // The mask plus 1, by call.
  bool leader_dead = false;
  bool aborted = false;
  std::string failure;
};

// Replays a rank's calls so far and determines how its next call proceeds.
template <class Member>
class ReplayedMasks {
 public:
  ReplayedMasks(VoteRank<Member>& rank, const ExploredCase& of, size_t index)
      : rank_(rank), case_(of), index_(index), masks_(std::make_unique<Exchange>(*this), Nothing) {
    for (uint64_t call = 0; call < rank.calls; ++call)
      (void)masks_.AgreedMask(kSituation, call, Offered(call));
  }
  // Returns the mask from which the rank's next call may choose, or nothing if the call has to wait.
  std::optional<uint64_t> NextCall() {
    const auto awaited = masks_.AwaitedVerdict(kSituation, rank_.calls);
    if (awaited && !awaited->ready()) return std::nullopt;
    const auto mask = masks_.AgreedMask(kSituation, rank_.calls, Offered(rank_.calls));
    return mask ? mask->to_ullong() : 0;
  }

 private:
  class Exchange final : public MaskExchange {
   public:
    explicit Exchange(ReplayedMasks& of) : of_(of) {}
    std::shared_ptr<PendingVerdict> Pledge(const MaskPledge& pledge) override {
      Part<Member>& part = of_.rank_.parts.at(1 + static_cast<size_t>(pledge.attempt));
      part.begun = true;
      part.call_number = pledge.call_number;
      part.mask = pledge.mask.to_ullong();
      auto verdict = std::make_shared<PendingVerdict>();
      if (part.member.decision()) verdict->Resolve(*part.member.decision());
      return verdict;
    }

   private:
    ReplayedMasks& of_;
  };

  static void Nothing(const CallSituation&, const Verdict&) {}
  ConfigMask Offered(uint64_t call) const {
    return ConfigMask(call == case_.unlike_call && index_ == 1 ? 0b101u : 0b111u);
  }

  static constexpr CallSituation kSituation{Collective::kAllReduce, SizeClass{1}, 1};
  VoteRank<Member>& rank_;
  const ExploredCase& case_;
  const size_t index_;
  MaskAgreement masks_;
};

template <class Member, class Memory>
class Votes {
 public:
  using State = VotesState<Member>;
  using States = std::vector<State>;

  explicit Votes(const ExploredCase& of) : case_(of) {}

  State First() const {
    State first;
    for (auto& rank : first.ranks) rank.attested = rank.uses_table = case_.attested;
    return first;
  }

  bool HasEnded(const State& state) {
    by_table_ += state.decided[case_.calls - 1] > 1 ? 1 : 0;
    return state.aborted || std::all_of(state.ranks.begin(), Last(state),
                                        [this](const auto& rank) { return rank.calls == case_.calls; });
  }
  // Counts states in which all ranks had agreed on the mask of a rank's last call.
  size_t by_table() const { return by_table_; }

  States After(const State& state) const {
    States next;
    if (state.aborted) return next;
    for (size_t r = 0; r < case_.n_ranks; ++r) {
      if (state.ranks[r].dead) continue;
      AddIssuingSteps(state, r, next);
      for (size_t m = 0; m < kVotes; ++m) AddMemberSteps(state, r, m, next);
    }
    AddLeaderSteps(state, next);
    return next;
  }

  uint64_t Digest(const State& state) const {
    words_.clear();
    for (size_t r = 0; r < case_.n_ranks; ++r) {
      const auto& rank = state.ranks[r];
      uint64_t word = rank.calls << 3 | uint64_t{rank.attested} << 2 | uint64_t{rank.uses_table} << 1 |
                      uint64_t{rank.dead};
      for (const auto& part : rank.parts) {
        const auto& decision = part.member.decision();
        word = word << 5 | uint64_t{part.begun} << 4 | uint64_t{part.member.pledged()} << 3 |
               (decision ? 1 + static_cast<uint64_t>(SaidBy(*decision)) : 0);
      }
      words_.push_back(word);
    }
    for (const auto& hosted : state.hosted) words_.push_back(WordOf(hosted));
    words_.insert(words_.end(), state.decided.begin(), state.decided.end());
    words_.push_back(uint64_t{state.pledges} << 2 | uint64_t{state.leader_dead} << 1 |
                     uint64_t{state.aborted});
    words_.push_back(state.verdicts);
    return XXH3_64bits(words_.data(), words_.size() * sizeof(uint64_t));
  }

 private:
  auto Last(const State& state) const {
    return state.ranks.begin() + static_cast<std::ptrdiff_t>(case_.n_ranks);
  }

  // Packs a vote at the leader into a word. Pledges of a decided vote are left out, because they change
  // nothing.
  static uint64_t WordOf(const std::optional<Hosted>& hosted) {
    if (!hosted) return 0;
    const auto& verdict = hosted->attestation.verdict();
    return 1 |
           (verdict ? (1 + static_cast<uint64_t>(SaidBy(*verdict))) << 1 : uint64_t{hosted->pledged} << 8) |
           uint64_t{hosted->asked} << 16;
  }
  static uint32_t PledgeBit(size_t m, size_t r) { return 1u << (m * kMaxRanks + r); }
  static uint64_t VerdictBit(size_t m, size_t r, Said said) {
    return uint64_t{1} << ((m * kMaxRanks + r) * kSaid + static_cast<size_t>(said));
  }

  // ---- the issuing thread ----
  void AddIssuingSteps(const State& state, size_t r, States& next) const {
    const auto& rank = state.ranks[r];
    if (rank.calls == case_.calls) return;
    if (!rank.attested) return AddInitSteps(state, r, next);
    State after = state;
    auto& moved = after.ranks[r];
    const auto mask =
        rank.uses_table ? ReplayedMasks(moved, case_, r).NextCall() : std::optional(uint64_t{0});
    if (!mask) return;
    uint64_t& first = after.decided[rank.calls];
    if (first == 0) first = *mask + 1;
    if (first != *mask + 1) after.failure = fmt::format("{} at call {}", kDivergent, rank.calls);
    ++moved.calls;
    next.push_back(std::move(after));
  }

  // This is the only time-out that decides. A rank that is not attested never pledges a mask.
  void AddInitSteps(const State& state, size_t r, States& next) const {
    const Part<Member>& part = state.ranks[r].parts[0];
    State& after = next.emplace_back(state);
    auto& rank = after.ranks[r];
    if (!part.begun) {
      rank.parts[0].begun = true;
      return;
    }
    rank.attested = true;
    rank.uses_table = part.member.decision() && part.member.decision()->agreed;
  }

  // ---- the thread that sends pledges ----
  void AddMemberSteps(const State& state, size_t r, size_t m, States& next) const {
    for (size_t said = 0; said < kSaid; ++said) {
      const uint64_t bit = VerdictBit(m, r, static_cast<Said>(said));
      if ((state.verdicts & bit) == 0) continue;
      next.emplace_back(state).ranks[r].parts[m].member.ApplyVerdict(VerdictOf(static_cast<Said>(said)));
      next.emplace_back(state).verdicts &= ~bit;  // The verdict is lost.
    }
    const Part<Member>& part = state.ranks[r].parts[m];
    const bool over = m == 0 && state.ranks[r].attested;
    constexpr bool kSaysMore = requires(Member & member) {
      member.PledgesWhenItHasDecided();
    };
    if (!part.begun || over || (part.member.decision() && !kSaysMore)) return;
    State& said = next.emplace_back(state);
    if (said.ranks[r].parts[m].member.Pledge()) said.pledges |= PledgeBit(m, r);
    (void)next.emplace_back(state).ranks[r].parts[m].member.FallBackToNccl("");
    if constexpr (requires(Member & member) { member.LeaderEnded(); }) {
      if (state.leader_dead) next.emplace_back(state).ranks[r].parts[m].member.LeaderEnded();
    }
  }

  // ---- the leader ----
  void AddLeaderSteps(const State& state, States& next) const {
    for (size_t m = 0; m < kVotes; ++m) {
      for (size_t r = 0; r < case_.n_ranks; ++r) {
        if ((state.pledges & PledgeBit(m, r)) == 0) continue;
        next.emplace_back(state).pledges &= ~PledgeBit(m, r);  // The pledge is lost.
        if (!state.leader_dead) TakePledge(next.emplace_back(state), m, r);
      }
      const auto& hosted = state.hosted[m];
      if (state.leader_dead || !hosted || hosted->attestation.verdict()) continue;
      State& expired = next.emplace_back(state);
      expired.hosted[m]->attestation.Expire();
      Tell(expired, m);
    }
    if (state.leader_dead) return AddAbort(state, next);
    if (!case_.leader_may_die) return;
    State& dead = next.emplace_back(state);
    dead.leader_dead = true;
    if (!case_.leader_apart) dead.ranks[0].dead = true;
  }

  void TakePledge(State& after, size_t m, size_t r) const {
    if constexpr (Memory::kForgetsTold) {
      for (auto& hosted : after.hosted) {
        if (hosted && hosted->attestation.verdict() && hosted->asked == 0) hosted.reset();
      }
    }
    auto& hosted = after.hosted[m];
    if (!hosted) hosted.emplace(static_cast<int>(case_.n_ranks));
    const Part<Member>& part = after.ranks[r].parts[m];
    AttestedValues values;
    values.place = std::to_string(part.call_number);
    values.mask = std::to_string(part.mask);
    hosted->attestation.Pledge(static_cast<int>(r), static_cast<int>(case_.n_ranks), values);
    hosted->pledged |= 1u << r;
    hosted->asked |= 1u << r;
    Tell(after, m);
  }

  void Tell(State& after, size_t m) const {
    Hosted& hosted = *after.hosted[m];
    if (!hosted.attestation.verdict()) return;
    const Said said = SaidBy(*hosted.attestation.verdict());
    for (size_t r = 0; r < case_.n_ranks; ++r) {
      if ((hosted.asked & 1u << r) != 0) after.verdicts |= VerdictBit(m, r, said);
    }
    hosted.asked = 0;
  }

  // After the death of a process, the communicator is aborted. No rank may wait after that.
  void AddAbort(const State& state, States& next) const {
    State after = state;
    after.aborted = true;
    for (size_t r = 0; r < case_.n_ranks; ++r) {
      auto& rank = after.ranks[r];
      for (auto& part : rank.parts) part.member.Release();
      const bool calls_on = !rank.dead && rank.attested && rank.uses_table && rank.calls < case_.calls;
      if (calls_on && !ReplayedMasks(rank, case_, r).NextCall())
        after.failure = fmt::format("{}: rank {} after an abort", kEndlessWait, r);
    }
    next.push_back(std::move(after));
  }

  const ExploredCase case_;
  mutable std::vector<uint64_t> words_;
  size_t by_table_ = 0;
};

template <class Member, class Memory = RemembersVerdicts>
std::string Explore(const ExploredCase& of) {
  Votes<Member, Memory> votes(of);
  return ExploredStates(votes).Explore();
}

void ExpectSound(const ExploredCase& of, size_t least_states) {
  Votes<VotingMember, RemembersVerdicts> votes(of);
  ExploredStates states(votes);
  EXPECT_EQ(states.Explore(), "");
  ::testing::Test::RecordProperty("states", static_cast<int>(states.size()));
  EXPECT_GT(states.size(), least_states);
  const bool differs_when_asked = of.unlike_call == 0;
  EXPECT_TRUE(votes.by_table() > 0 || differs_when_asked);
}

TEST(VotesExplored, TwoRanksAgreeAndComeToTheirEnd) {
  ExpectSound({}, 300'000);
}

TEST(VotesExplored, TwoRanksThatAreOfferedOtherConfigurations) {
  ExpectSound({.calls = 2, .unlike_call = 0}, 10'000);
  ExpectSound({.calls = 2, .unlike_call = 1}, 10'000);
  ExpectSound({.attested = true, .unlike_call = 3}, 10'000);
}

TEST(VotesExplored, LeaderThatDies) {
  ExpectSound({.calls = 2, .leader_may_die = true}, 10'000);
  ExpectSound({.calls = 2, .leader_apart = true, .leader_may_die = true}, 10'000);
}

TEST(VotesExplored, ThreeRanksOnceTheyAreAttested) {
  ExpectSound({.n_ranks = 3, .calls = 4, .attested = true}, 10'000);
}

template <class Member, class Memory = RemembersVerdicts>
bool Diverges() {
  return Explore<Member, Memory>({.calls = 2, .attested = true, .leader_apart = true, .leader_may_die = true})
      .starts_with(kDivergent);
}

TEST(VotesExplored, FindsWrongMembersAndAForgetfulLeader) {
  EXPECT_TRUE(Diverges<TakesSilenceForANo>());
  EXPECT_TRUE(Diverges<TakesTheLeadersEndForANo>());
  EXPECT_TRUE(Diverges<PledgesAfterItWentAlone>());
  EXPECT_TRUE((Diverges<VotingMember, ForgetsVerdicts>()));
  EXPECT_EQ(Explore<SendsItsPledgeOnce>({.calls = 2, .attested = true}), kEndlessWait);
}

}  // namespace
}  // namespace dynamiccl::testing
