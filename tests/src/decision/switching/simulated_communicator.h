// SPDX-License-Identifier: Apache-2.0
// Simulates the life of one communicator in virtual time. Everything is drawn from one seed. Ranks issue
// calls and decide, their control threads switch tables by the shipped code, and all kinds of faults occur.
// Every decision is compared with those of the other ranks. After the faults stop, all ranks must reach the
// table that was requested last.
//
// Member: SwitchMember, or a wrong one. Structure: how a decision reads the state that earlier calls left.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <type_traits>

#include "src/decision/switching/call_gate.h"
#include "src/decision/switching/switch_leader.h"
#include "src/decision/switching/switch_member.h"
#include "tests/src/decision/switching/simulated_life.h"

namespace dynamiccl::testing {

struct SimulationCounts {
  uint64_t decisions = 0;
  uint64_t lives = 0;
  uint64_t requests = 0;
  uint64_t commits = 0;
  uint64_t aborts = 0;
  uint64_t refused_passed = 0;
  uint64_t waits = 0;  // Calls that came to the boundary before the verdict.
  uint64_t asks = 0;
  uint64_t crashes = 0;
  uint64_t lost_messages = 0;
  uint64_t returns = 0;  // Ranks that the leader had lost and that came back.
  uint64_t converged = 0;
  // The counts below grow only if the leader has a guard (tests/plugin/simulated_experiments.h).
  uint64_t trials = 0;         // Decisions that used an arm.
  uint64_t leading = 0;        // Of these, the decisions in plans with a leading arm.
  uint64_t searches = 0;       // Committed versions that begin or continue an experiment.
  uint64_t challenges = 0;     // Committed versions with a challenger beside the leading arm.
  uint64_t beliefs = 0;        // Committed versions whose leading arm other places' findings promise.
  uint64_t adoptions = 0;      // Committed versions that adopt what steps found.
  uint64_t revocations = 0;    // Committed versions that revoke a choice at once.
  uint64_t memory_levels = 0;  // Committed versions with another level of memory.
};

template <class Member, class Structure>
class SimulatedCommunicator : public SimulatedLife<SwitchMessage, SimulationCounts> {
 public:
  SimulatedCommunicator(uint64_t seed, uint64_t decisions)
      : SimulatedLife(seed, decisions, DrawFaults), leader_(faults_.n_ranks) {
    request_ns_ = random_.Waiting(faults_.request_ns);
    for (Rank& rank : ranks_) Add(rank);
  }

 protected:
  struct Rank : SimulatedRank {
    CallGate own_gate;
    CallGate* gate = &own_gate;
    Member member{own_gate};
    Structure structure;
    bool begun = false;  // True once next_call has begun.
  };

  // Returns the rank's decision at its next call: the version in use in the upper 32 bits, the rest of the
  // decision in the lower.
  virtual uint64_t DecisionOf(Rank& rank) {
    return uint64_t{rank.gate->version()} << 32 | rank.structure.Read(now_);
  }
  // Requests another table, as the leader.
  virtual void Request() { RequestOf(NextVersion(), DrawReason()); }
  // Does the work of the leader's thread, before it sends.
  virtual void LeaderWorks() {}
  virtual void TakeOutcome(const SwitchOutcome&) {}
  // Returns true if the rank can make the table of this version.
  virtual bool Offer(Rank&, uint32_t) { return true; }
  // Requests the version. TakeOutcome receives the outcome of an earlier request.
  bool RequestOf(uint32_t version, SwitchReason reason) {
    if (random_.Chance(faults_.unusable_table)) {
      unusable_version_ = version;
      unusable_rank_ = static_cast<int>(random_.Below(ranks_.size()));
    }
    const bool taken = leader_.Request({reason, version});
    counts_.requests += taken ? 1 : 0;
    return taken;
  }
  uint32_t NextVersion() { return ++version_; }
  void HearVerdict(Rank& rank, const SwitchMessage& message) {
    if constexpr (std::is_void_v<decltype(rank.member.ApplyVerdict(0, true))>) {
      rank.member.ApplyVerdict(message.attempt, message.commit);
    } else if (rank.member.ApplyVerdict(message.attempt, message.commit)) {
      Committed(rank);
    }
  }
  // Breaks connections of living ranks, which then connect again. Draws from a seed of its own, so that
  // everything else stays as it is.
  void BreakConnections(uint64_t seed) {
    SeededRandom breaks(seed);
    for (int rank = 0; rank < faults_.n_ranks; ++rank) {
      int64_t at_ns = 0;
      for (auto kind = Event::Kind::kRankLost; kind == Event::Kind::kRankBack || breaks.Chance(300);
           kind = kind == Event::Kind::kRankLost ? Event::Kind::kRankBack : Event::Kind::kRankLost) {
        at_ns += breaks.AcrossScales(1'000'000, 4'000'000'000);
        network_.Schedule({at_ns, 0, kind, 0, rank, {}});
      }
    }
  }
  // Is called when the rank learns that the version of its gate is committed.
  virtual void Committed(Rank&) {}

  static constexpr uint64_t kStructureBits = UINT32_MAX;

  SwitchLeader leader_;
  std::array<Rank, kMaxSimulatedRanks> all_ranks_;
  const std::span<Rank> ranks_{all_ranks_.data(), static_cast<size_t>(faults_.n_ranks)};

 private:
  // ---- the issuing thread ----
  void Call(SimulatedRank& of) override {
    Rank& rank = static_cast<Rank&>(of);
    if (!rank.begun) {
      if (BlockedBySlowest(rank)) return;
      rank.gate->Begin(rank.next_call);
      rank.begun = true;
      if (random_.Chance(faults_.interrupted)) {
        rank.call_ns = now_ + random_.Waiting(faults_.delay_ns);
        return;
      }
    }
    if (!rank.gate->TryPass(rank.next_call)) {
      counts_.waits += rank.waiting ? 0 : 1;
      rank.waiting = true;
      rank.call_ns = kNeverNs;
      return;
    }
    rank.waiting = false;
    Decide(rank);
    rank.begun = false;
    FinishCall(rank);
  }

  void Decide(Rank& rank) {
    const uint64_t decision = DecisionOf(rank);
    const uint64_t first = FirstDecision(rank, decision);
    if (first != decision) {
      failure_ =
          fmt::format("{}: call {}: rank {} decides by table v{} and structure {:x}, another by v{} and {:x}",
                      kDivergent, rank.next_call, rank.index, decision >> 32, decision & kStructureBits,
                      first >> 32, first & kStructureBits);
    }
    rank.structure.Step(rank.next_call, now_, random_);
  }

  // ---- the control thread ----
  void ControlStep(SimulatedRank& of) override {
    Rank& rank = static_cast<Rank&>(of);
    if (rank.index == 0) LeaderTick(rank);
    if (!rank.crashed) Say(rank, rank.member.Tick(now_));
    WakeWaiting(rank);
  }

  void LeaderTick(Rank& rank) {
    if (!calm_ && now_ >= request_ns_) {
      request_ns_ = random_.Chance(250) ? now_ : now_ + random_.Waiting(faults_.request_ns);
      Request();
    }
    LeaderWorks();
    Say(rank, leader_.Tick(now_, rank.gate->calls()));
    CountOutcome();
  }

  SwitchReason DrawReason() {
    const uint64_t kind = random_.Below(8);
    return kind == 0   ? SwitchReason::kRevocation
           : kind == 1 ? SwitchReason::kAdoption
                       : SwitchReason::kOperator;
  }

  void Handle(SimulatedRank& of, const Event& event) override {
    Rank& rank = static_cast<Rank&>(of);
    switch (event.kind) {
      case Event::Kind::kAnswerDue:
        Say(rank, rank.member.Answer());
        break;
      case Event::Kind::kRankLost:
        // The faults have stopped.
        if (calm_ && !ranks_[static_cast<size_t>(event.from)].crashed) break;
        Say(rank, leader_.LoseRank(event.from));
        CountOutcome();
        break;
      case Event::Kind::kRankBack:
        if (ranks_[static_cast<size_t>(event.from)].crashed) break;
        leader_.RegainRank(event.from);
        ++counts_.returns;
        break;
      case Event::Kind::kMessage:
        if (network_.Reachable(now_, event.to)) Hear(rank, event.from, event.message);
    }
    WakeWaiting(rank);
  }

  void Hear(Rank& rank, int from, const SwitchMessage& message) {
    switch (message.kind) {
      case SwitchKind::kPrepare:
        return HearPrepare(rank, message);
      case SwitchKind::kPledge:
      case SwitchKind::kRefuse:
        Say(rank, leader_.HandleAnswer(from, message, rank.gate->calls()));
        return CountOutcome();
      case SwitchKind::kVerdict:
        return HearVerdict(rank, message);
      case SwitchKind::kAsk:
        return Say(rank, rank.index == 0 ? leader_.AnswerPeer(from, message.attempt)
                                         : rank.member.AnswerPeer(from, message.attempt));
    }
  }

  void HearPrepare(Rank& rank, const SwitchMessage& prepare) {
    const bool usable = prepare.version != unusable_version_ || rank.index != unusable_rank_;
    rank.member.Prepare(prepare, Offer(rank, prepare.version) && usable);
    if (!random_.Chance(faults_.interrupted)) return Say(rank, rank.member.Answer());
    // The control thread is interrupted between arming and answering; meanwhile only the issuing thread runs.
    rank.control_free_ns = now_ + 1 + random_.Waiting(faults_.delay_ns);
    const int index = rank.index;
    network_.Schedule({rank.control_free_ns, 0, Event::Kind::kAnswerDue, index, index, {}});
  }

  void Say(Rank& rank, const SwitchSends& sends) {
    const int from = rank.index;
    for (const SwitchSend& send : sends) {
      counts_.asks += send.message.kind == SwitchKind::kAsk ? 1 : 0;
      for (int to = 0; to < faults_.n_ranks; ++to) {
        const bool to_self = to == from && send.message.kind == SwitchKind::kAsk;
        if ((send.to != kAllRanks && send.to != to) || to_self) continue;
        if (!Send(rank, to, send.message)) return;
      }
    }
  }

  void CountOutcome() {
    const auto outcome = leader_.TakeOutcome();
    if (!outcome) return;
    const bool commit = outcome->end == SwitchOutcome::End::kCommitted;
    counts_.commits += commit ? 1 : 0;
    counts_.aborts += commit ? 0 : 1;
    counts_.refused_passed += outcome->end == SwitchOutcome::End::kRankPassed ? 1 : 0;
    TakeOutcome(*outcome);
  }

  // ---- the ends ----
  void ScheduleNotice(const SimulatedRank& rank) override {
    const int64_t noticed = now_ + random_.AcrossScales(100'000, 2'000'000'000);
    network_.Schedule({noticed, 0, Event::Kind::kRankLost, 0, rank.index, {}});
  }

  void Abort() override {
    for (Rank& rank : ranks_) {
      rank.gate->Release();
      if (rank.waiting && !rank.gate->TryPass(rank.next_call)) {
        failure_ =
            fmt::format("{}: rank {} at call {} after an abort", kEndlessWait, rank.index, rank.next_call);
      }
    }
  }

  void BeginCalm() override {
    ++version_;
    unusable_version_ = 0;
    // The deadline allows for time-outs and old messages, then for the farthest boundary and one that was
    // committed before it.
    deadline_ns_ = now_ + 150'000'000'000 + 3 * static_cast<int64_t>(kMaxSwitchDistance) * faults_.call_ns;
  }

  void CheckConvergence() override {
    // First every rank must finish what was begun, without a new attempt that would wake it.
    const bool settled =
        std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& r) { return r.gate->idle(); });
    if (settled && !requested_last_) requested_last_ = leader_.Request({SwitchReason::kOperator, version_});
    if (now_ < deadline_ns_) {
      for (const Rank& rank : ranks_) {
        if (rank.waiting || rank.gate->version() != version_) return;
      }
      over_ = true;
      ++counts_.converged;
      return;
    }
    for (const Rank& rank : ranks_) {
      if (rank.waiting)
        failure_ = fmt::format("{}: rank {} at call {}", kEndlessWait, rank.index, rank.next_call);
    }
    if (failure_.empty()) failure_ = fmt::format("NO CONVERGENCE: v{} is not everywhere", version_);
  }

  int64_t request_ns_ = 0;
  uint32_t version_ = 0;
  uint32_t unusable_version_ = 0;
  int unusable_rank_ = -1;
  bool requested_last_ = false;
};

}  // namespace dynamiccl::testing
