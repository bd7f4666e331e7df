// SPDX-License-Identifier: Apache-2.0
// Simulates one communicator's life in virtual time from a seed. Its ranks attest each other and then
// exchange what NCCL offers them for each situation, by the shipped code and under faults. Every call's mask
// is compared with those of the other ranks. After the faults stop, no rank may wait long.
//
// `Member` is VotingMember, or a class that breaks a rule. `Memory` states what the leader keeps of a vote.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/decision/attestation.h"
#include "src/decision/mask_agreement.h"
#include "src/decision/voting_member.h"
#include "tests/src/decision/switching/simulated_life.h"

namespace dynamiccl::testing {

struct VoteCounts {
  uint64_t decisions = 0;
  uint64_t lives = 0;
  uint64_t by_table = 0;  // Decisions that an agreed mask allows.
  uint64_t votes = 0;
  uint64_t yes = 0;
  uint64_t unequal = 0;
  uint64_t late = 0;
  uint64_t alone = 0;  // Ranks that could not pledge in time.
  uint64_t not_attested = 0;
  uint64_t waits = 0;  // Calls that came before their verdict.
  uint64_t asked_again = 0;
  uint64_t crashes = 0;
  uint64_t lost_messages = 0;
  uint64_t converged = 0;
};

// The number of a vote. Vote 0 is about the communicator.
using VoteName = uint32_t;

struct VoteMessage {
  bool is_verdict = false;
  VoteName vote = 0;
  uint64_t call_number = 0;  // For a pledge.
  uint64_t mask = 0;         // For a pledge.
  bool agreed = false;       // For a verdict.
  bool timed_out = false;    // For a verdict.
};

template <class Member, class Memory>
class SimulatedVotes final : public SimulatedLife<VoteMessage, VoteCounts> {
 public:
  SimulatedVotes(uint64_t seed, uint64_t decisions) : SimulatedLife(seed, decisions, Draw) {
    // A child of a split need not have the leader among its ranks.
    leader_ = random_.Chance(300) ? faults_.n_ranks : 0;
    if (faults_.crashing_rank == 0) faults_.crashing_rank = leader_;
    situations_ = 1 + random_.Below(40);
    unlike_ = random_.Chance(300) ? 100 : 0;
    for (int rank = 0; rank <= leader_ || rank < faults_.n_ranks; ++rank)
      Begin(all_ranks_[static_cast<size_t>(rank)]);
  }

 private:
  struct Sent {
    VoteMessage pledge;
    int64_t reach_until_ns = 0;
    int64_t next_send_ns = 0;
    std::shared_ptr<PendingVerdict> verdict;
    Member member;
  };
  struct Rank : SimulatedRank {
    std::unique_ptr<MaskAgreement> masks;
    std::list<Sent> sent;
    std::shared_ptr<PendingVerdict> attested;  // Null once the rank has taken the verdict.
    int64_t attest_until_ns = 0;
    bool uses_table = false;
    int64_t waiting_since_ns = 0;
  };
  struct Vote {
    Vote(int n_ranks, int64_t deadline) : attestation(n_ranks), deadline_ns(deadline) {}
    Attestation attestation;
    int64_t deadline_ns;
    std::vector<int> asked;  // The ranks without an answer.
  };
  // Passes a rank's pledges to its control thread.
  class Exchange final : public MaskExchange {
   public:
    Exchange(SimulatedVotes& life, Rank& rank) : life_(life), rank_(rank) {}
    std::shared_ptr<PendingVerdict> Pledge(const MaskPledge& pledge) override {
      VoteMessage message;
      message.vote = 1 + pledge.situation.operands * 8 + static_cast<VoteName>(pledge.attempt);
      message.call_number = pledge.call_number;
      message.mask = pledge.mask.to_ullong();
      return life_.Queue(rank_, message, kPatienceNs);
    }

   private:
    SimulatedVotes& life_;
    Rank& rank_;
  };

  static SimulatedFaults Draw(SeededRandom& random) {
    SimulatedFaults faults = DrawFaults(random);
    // One place remains for a separate leader.
    faults.n_ranks = std::min(faults.n_ranks, kMaxSimulatedRanks - 1);
    if (faults.crashing_rank >= faults.n_ranks) faults.crashing_rank = 0;
    return faults;
  }

  void Begin(Rank& rank) {
    Add(rank);
    rank.masks = std::make_unique<MaskAgreement>(std::make_unique<Exchange>(*this, rank),
                                                 [](const CallSituation&, const Verdict&) {});
    const bool takes_part = rank.index < faults_.n_ranks;
    rank.call_ns = takes_part ? random_.AcrossScales(1'000, 3'000'000'000) : kNeverNs;
  }

  // ---- the issuing thread ----
  void Call(SimulatedRank& of) override {
    Rank& rank = static_cast<Rank&>(of);
    if (rank.attest_until_ns == 0) return BeginInit(rank);
    if (rank.attested != nullptr) return EndInit(rank);
    if (!rank.waiting && BlockedBySlowest(rank)) return;
    const CallSituation situation = SituationOf(rank.next_call);
    if (rank.uses_table && rank.masks->AwaitedVerdict(situation, rank.next_call)) return Wait(rank);
    if (std::exchange(rank.waiting, false)) CheckWait(rank);
    Decide(rank, situation);
    FinishCall(rank);
  }

  void BeginInit(Rank& rank) {
    rank.attested = Queue(rank, {}, kInitPatienceNs);
    rank.attest_until_ns = now_ + kInitPatienceNs + kAnswerNs;
    rank.call_ns = now_ + faults_.tick_ns;
  }

  // This is the only time-out that decides. A rank that is not attested never pledges a mask.
  void EndInit(Rank& rank) {
    if (!rank.attested->ready() && now_ < rank.attest_until_ns) {
      rank.call_ns = now_ + faults_.tick_ns;
      return;
    }
    rank.uses_table = rank.attested->ready() && rank.attested->Wait().agreed;
    counts_.not_attested += rank.uses_table ? 0 : 1;
    rank.attested.reset();
    std::erase_if(rank.sent, [](const Sent& sent) { return sent.pledge.vote == 0; });
    rank.call_ns = now_ + 1;
  }

  void Wait(Rank& rank) {
    if (!std::exchange(rank.waiting, true)) {
      ++counts_.waits;
      rank.waiting_since_ns = now_;
    }
    rank.call_ns = kNeverNs;
  }

  // Once the faults have stopped and lost messages were sent again, no rank may wait longer than the leader's
  // time plus the messages' time.
  void CheckWait(const Rank& rank) {
    const int64_t most = kPatienceNs + 200'000'000 + 200 * (faults_.final_delay_ns + faults_.tick_ns);
    if (!calm_ || rank.waiting_since_ns < calm_ns_ || now_ - rank.waiting_since_ns <= most) return;
    failure_ = fmt::format("LONG WAIT: rank {} at call {}: {} ms", rank.index, rank.next_call,
                           (now_ - rank.waiting_since_ns) / 1'000'000);
  }

  // Returns the situation of a call, which is equal on all ranks.
  CallSituation SituationOf(uint64_t call) const {
    SeededRandom draw(call * 2654435761u + situations_);
    return {Collective::kAllReduce, SizeClass{1}, static_cast<uint32_t>(1 + draw.Below(situations_))};
  }

  // Returns the offered mask. It is mostly equal on all ranks, but may change on one rank from call to call.
  ConfigMask Offered(const Rank& rank, uint64_t call) {
    const bool other = random_.Chance(unlike_) && rank.index == 1;
    return ConfigMask(other ? 0b101u : 0b111u << (SituationOf(call).operands % 3));
  }

  void Decide(Rank& rank, const CallSituation& situation) {
    const uint64_t call = rank.next_call;
    uint64_t mask = 0;
    if (rank.uses_table) {
      const auto agreed = rank.masks->AgreedMask(situation, call, Offered(rank, call));
      mask = agreed ? agreed->to_ullong() : 0;
    }
    const uint64_t first = FirstDecision(rank, mask);
    if (first != mask) {
      failure_ = fmt::format("{}: call {}: rank {} may choose of {:x}, another of {:x}", kDivergent, call,
                             rank.index, mask, first);
    }
    counts_.by_table += mask != 0 ? 1 : 0;
  }

  // ---- the thread that sends pledges ----
  std::shared_ptr<PendingVerdict> Queue(Rank& rank, const VoteMessage& pledge, int64_t reach_ns) {
    auto verdict = std::make_shared<PendingVerdict>();
    rank.sent.push_back({pledge, now_ + reach_ns, now_, verdict, {}});
    return verdict;
  }

  void ControlStep(SimulatedRank& of) override {
    Rank& rank = static_cast<Rank&>(of);
    if (rank.index == leader_) ExpireVotes(rank);
    for (Sent& sent : rank.sent) Say(rank, sent);
    Resolve(rank);
  }

  void Say(Rank& rank, Sent& sent) {
    if (rank.crashed || now_ < sent.next_send_ns) return;
    if (now_ >= sent.reach_until_ns && sent.member.FallBackToNccl("")) ++counts_.alone;
    const bool reached = network_.Reachable(now_, rank.index) && network_.Reachable(now_, leader_) &&
                         !all_ranks_[static_cast<size_t>(leader_)].crashed;
    if (!reached) return;
    const bool again = sent.member.pledged();
    if (!sent.member.Pledge()) return;
    counts_.asked_again += again ? 1 : 0;
    // Connections hold, even if messages are lost.
    sent.next_send_ns = now_ + PatienceOf(sent.pledge) + kAnswerNs;
    Send(rank, leader_, sent.pledge);
  }

  void Resolve(Rank& rank) {
    for (Sent& sent : rank.sent) {
      if (sent.member.decision()) sent.verdict->Resolve(*sent.member.decision());
    }
    if constexpr (!requires(Member & member) { member.PledgesWhenItHasDecided(); })
      std::erase_if(rank.sent, [](const Sent& sent) { return sent.member.decision().has_value(); });
    WakeWaiting(rank);
  }

  void Handle(SimulatedRank& of, const Event& event) override {
    Rank& rank = static_cast<Rank&>(of);
    if (event.kind == Event::Kind::kRankLost) return LeaderEnded();
    if (!network_.Reachable(now_, event.to)) return;
    if (!event.message.is_verdict) return TakePledge(rank, event.from, event.message);
    for (Sent& sent : rank.sent) {
      if (sent.pledge.vote != event.message.vote) continue;
      sent.member.ApplyVerdict({event.message.agreed, event.message.timed_out, {}});
    }
    Resolve(rank);
  }

  void LeaderEnded() {
    if constexpr (requires(Member & member) { member.LeaderEnded(); }) {
      for (Rank& rank : all_ranks_) {
        for (Sent& sent : rank.sent) sent.member.LeaderEnded();
        Resolve(rank);
      }
    }
  }

  // ---- the leader ----
  static int64_t PatienceOf(const VoteMessage& pledge) {
    return pledge.vote == 0 ? kInitPatienceNs : kPatienceNs;
  }

  void TakePledge(Rank& leader, int from, const VoteMessage& pledge) {
    if constexpr (Memory::kForgetsTold) {
      std::erase_if(votes_, [](const auto& vote) {
        return vote.second.attestation.verdict() && vote.second.asked.empty();
      });
    }
    auto [found, created] = votes_.try_emplace(pledge.vote, faults_.n_ranks, now_ + PatienceOf(pledge));
    counts_.votes += created ? 1 : 0;
    expire_ns_ = std::min(expire_ns_, found->second.deadline_ns);
    Vote& vote = found->second;
    AttestedValues values;
    values.place = std::to_string(pledge.call_number);
    values.mask = std::to_string(pledge.mask);
    vote.attestation.Pledge(from, faults_.n_ranks, values);
    vote.asked.push_back(from);
    Tell(leader, found->first, vote);
  }

  void ExpireVotes(Rank& leader) {
    if (now_ < expire_ns_) return;
    expire_ns_ = kNeverNs;
    for (auto& [name, vote] : votes_) {
      if (vote.attestation.verdict()) continue;
      if (now_ < vote.deadline_ns) {
        expire_ns_ = std::min(expire_ns_, vote.deadline_ns);
        continue;
      }
      vote.attestation.Expire();
      Tell(leader, name, vote);
      if (leader.crashed) return;
    }
  }

  void Tell(Rank& leader, VoteName name, Vote& vote) {
    const auto& verdict = vote.attestation.verdict();
    if (!verdict || vote.asked.empty()) return;
    Count(*verdict);
    VoteMessage message;
    message.is_verdict = true;
    message.vote = name;
    message.agreed = verdict->agreed;
    message.timed_out = verdict->timed_out;
    const std::vector<int> asked = std::exchange(vote.asked, {});
    for (const int rank : asked) {
      if (!Send(leader, rank, message)) return;
    }
  }

  void Count(const Verdict& verdict) {
    (verdict.agreed ? counts_.yes : verdict.timed_out ? counts_.late : counts_.unequal) += 1;
  }

  // ---- the ends ----
  void ScheduleNotice(const SimulatedRank& rank) override {
    if (rank.index != leader_) return;
    network_.Schedule({now_ + random_.AcrossScales(100'000, 500'000'000),
                       0,
                       Event::Kind::kRankLost,
                       leader_ == 0 ? 1 : 0,
                       leader_,
                       {}});
  }

  void Abort() override {
    for (Rank& rank : all_ranks_) {
      if (!rank.masks || rank.crashed) continue;
      for (Sent& sent : rank.sent) {
        sent.member.Release();
        sent.verdict->Resolve(*sent.member.decision());
      }
      if (rank.waiting && rank.masks->AwaitedVerdict(SituationOf(rank.next_call), rank.next_call))
        failure_ = fmt::format("{}: rank {} after an abort", kEndlessWait, rank.index);
    }
  }

  void BeginCalm() override {
    // The calm begins after the open votes and leaves time for some calls.
    calm_ns_ = now_ + kPatienceNs + kAnswerNs + 300'000'000;
    faults_.call_ns = std::max<int64_t>(faults_.call_ns, 1'000'000);
    deadline_ns_ = now_ + 150'000'000'000 + 4 * static_cast<int64_t>(kCalmCalls) * faults_.call_ns;
    calm_from_ = Slowest();
  }

  void CheckConvergence() override {
    if (now_ < deadline_ns_) {
      if (Slowest() < calm_from_ + kCalmCalls || now_ < calm_ns_) return;
      over_ = true;
      ++counts_.converged;
      return;
    }
    failure_ = fmt::format("{}: call {} is not passed by all", kEndlessWait, Slowest());
  }

  static constexpr int64_t kInitPatienceNs = 2'000'000'000;
  static constexpr int64_t kPatienceNs = kInitPatienceNs / kMaxLateSituations;
  static constexpr uint64_t kCalmCalls = 100;

  std::array<Rank, kMaxSimulatedRanks> all_ranks_;
  std::map<VoteName, Vote> votes_;
  int leader_ = 0;
  uint64_t situations_ = 1;
  int unlike_ = 0;
  int64_t expire_ns_ = kNeverNs;  // The time at which the first open vote ends.
  int64_t calm_ns_ = kNeverNs;
  uint64_t calm_from_ = 0;
};

}  // namespace dynamiccl::testing
