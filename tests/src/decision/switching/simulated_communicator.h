// SPDX-License-Identifier: Apache-2.0
// One communicator's life in virtual time, from a seed alone: ranks issue calls and decide, their control
// threads switch tables by the code that ships, and everything that can go wrong does. An oracle compares
// every decision. After the faults stop, all ranks must come to the last requested table.
//
// Member: SwitchMember, or a wrong one. Structure: how a decision reads what the calls before it say.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "src/decision/switching/call_gate.h"
#include "src/decision/switching/switch_leader.h"
#include "src/decision/switching/switch_member.h"
#include "tests/src/decision/switching/simulated_network.h"
#include "tests/src/decision/switching/simulated_seeds.h"

namespace dynamiccl::testing {

struct SimulationCounts {
  uint64_t decisions = 0;
  uint64_t lives = 0;
  uint64_t requests = 0;
  uint64_t commits = 0;
  uint64_t aborts = 0;
  uint64_t refused_passed = 0;
  uint64_t waits = 0;  // calls that came to the boundary before the verdict
  uint64_t asks = 0;
  uint64_t crashes = 0;
  uint64_t lost_messages = 0;
  uint64_t converged = 0;
};

template <class Member, class Structure>
class SimulatedCommunicator {
 public:
  SimulatedCommunicator(uint64_t seed, uint64_t decisions)
      : random_(seed),
        faults_(DrawFaults(random_)),
        network_(faults_, random_),
        leader_(faults_.n_ranks),
        decisions_until_calm_(decisions) {
    abort_ns_ = faults_.abort_ns;
    request_ns_ = random_.Waiting(faults_.request_ns);
  }
  SimulatedCommunicator(const SimulatedCommunicator&) = delete;
  SimulatedCommunicator& operator=(const SimulatedCommunicator&) = delete;

  // What went wrong; empty when nothing did.
  std::string Live(SimulationCounts& counts) {
    while (!over_ && failure_.empty()) Step();
    counts_.lives = 1;
    counts_.lost_messages = network_.lost();
    AddCounts(counts_, counts);
    return failure_;
  }

 private:
  using Event = SimulatedEvent<SwitchMessage>;
  struct Rank {
    CallGate gate;
    Member member{gate};
    Structure structure;
    uint64_t next_call = 0;
    bool begun = false;    // next_call has begun
    bool waiting = false;  // at the boundary
    bool blocked = false;  // by the slowest rank
    bool crashed = false;
    int64_t call_ns = 0;  // when it issues or goes on
    int64_t tick_ns = 0;
    int64_t control_free_ns = 0;  // its control thread does nothing before
    uint64_t sent = 0;
  };

  void Step() {
    int64_t when = network_.next_ns();
    Rank* acting = nullptr;
    bool is_call = false;
    for (Rank& rank : ranks_) {
      if (rank.call_ns < when) when = rank.call_ns, acting = &rank, is_call = true;
      if (rank.tick_ns < when) when = rank.tick_ns, acting = &rank, is_call = false;
    }
    now_ = when;
    if (now_ >= abort_ns_) return AbortCommunicator();
    if (acting == nullptr) {
      Handle(network_.Take());
    } else if (is_call) {
      Call(*acting);
    } else {
      Tick(*acting);
    }
    // A rank that can never be reached again may hold up all the others.
    const bool held_up = now_ > decided_ns_ + kHeldUpNs;
    const bool enough = counts_.decisions >= decisions_until_calm_ || held_up;
    if (!calm_ && enough && abort_ns_ == kNeverNs) BecomeCalm();
    if (calm_) CheckConvergence();
  }

  // ---- the issuing thread ----
  void Call(Rank& rank) {
    if (!rank.begun) {
      if (rank.next_call >= Slowest() + faults_.run_ahead) {
        rank.blocked = true;
        rank.call_ns = kNeverNs;
        return;
      }
      rank.gate.Begin(rank.next_call);
      rank.begun = true;
      if (random_.Chance(faults_.interrupted)) {
        rank.call_ns = now_ + random_.Waiting(faults_.delay_ns);
        return;
      }
    }
    if (!rank.gate.TryPass(rank.next_call)) {
      counts_.waits += rank.waiting ? 0 : 1;
      rank.waiting = true;
      rank.call_ns = kNeverNs;
      return;
    }
    rank.waiting = false;
    Decide(rank);
    FinishCall(rank);
  }

  void Decide(Rank& rank) {
    const uint64_t decision = uint64_t{rank.gate.version()} << 32 | rank.structure.Read(now_);
    if (rank.next_call >= decided_.size()) decided_.resize(rank.next_call + 1, kUndecided);
    uint64_t& first = decided_[rank.next_call];
    if (first == kUndecided) first = decision;
    if (first != decision) {
      failure_ = fmt::format(
          "DIVERGENT: call {}: rank {} decides by table v{} and structure {:x}, another by v{} and {:x}",
          rank.next_call, IndexOf(rank), decision >> 32, decision & kStructureBits, first >> 32,
          first & kStructureBits);
    }
    ++counts_.decisions;
    decided_ns_ = now_;
    rank.structure.Step(rank.next_call, now_, random_);
  }

  void FinishCall(Rank& rank) {
    const uint64_t slowest = Slowest();
    rank.begun = false;
    ++rank.next_call;
    rank.call_ns = now_ + 1 + random_.Waiting(faults_.call_ns);
    if (random_.Chance(faults_.call_stalls)) rank.call_ns += Stall();
    if (random_.Chance(faults_.process_stalls)) {
      rank.call_ns += Stall();
      rank.control_free_ns = rank.call_ns;
    }
    if (Slowest() == slowest) return;
    for (Rank& other : ranks_) {
      if (!other.blocked) continue;
      other.blocked = false;
      other.call_ns = now_;
    }
  }

  uint64_t Slowest() const {
    uint64_t slowest = UINT64_MAX;
    for (const Rank& rank : ranks_) slowest = std::min(slowest, rank.next_call);
    return slowest;
  }

  int64_t Stall() { return random_.AcrossScales(100'000, 2'000'000'000); }

  // ---- the control thread ----
  bool Busy(const Rank& rank) const { return now_ < rank.control_free_ns; }

  void Tick(Rank& rank) {
    if (Busy(rank)) {
      rank.tick_ns = rank.control_free_ns;
      return;
    }
    rank.tick_ns = now_ + 1 + random_.Waiting(faults_.tick_ns);
    if (random_.Chance(faults_.control_stalls)) rank.control_free_ns = now_ + Stall();
    if (IndexOf(rank) == 0) LeaderTick(rank);
    if (!rank.crashed) Say(rank, rank.member.Tick(now_));
    GoOn(rank);
  }

  void LeaderTick(Rank& rank) {
    if (!calm_ && now_ >= request_ns_) {
      request_ns_ = random_.Chance(250) ? now_ : now_ + random_.Waiting(faults_.request_ns);
      Request();
    }
    Say(rank, leader_.Tick(now_, rank.gate.calls()));
    CountOutcome();
  }

  void Request() {
    const uint64_t kind = random_.Below(8);
    const auto reason = kind == 0   ? SwitchReason::kRevocation
                        : kind == 1 ? SwitchReason::kAdoption
                                    : SwitchReason::kOperator;
    ++version_;
    if (random_.Chance(faults_.unusable_table)) {
      unusable_version_ = version_;
      unusable_rank_ = static_cast<int>(random_.Below(ranks_.size()));
    }
    counts_.requests += leader_.Request({reason, version_}) ? 1 : 0;
  }

  void Handle(const Event& event) {
    Rank& rank = ranks_[static_cast<size_t>(event.to)];
    if (rank.crashed) return;
    if (Busy(rank) && event.kind != Event::Kind::kAnswerDue) {
      Event later = event;
      later.due_ns = rank.control_free_ns;
      return network_.Schedule(later);
    }
    switch (event.kind) {
      case Event::Kind::kAnswerDue:
        Say(rank, rank.member.Answer());
        break;
      case Event::Kind::kRankLost:
        Say(rank, leader_.LoseRank(event.from));
        CountOutcome();
        break;
      case Event::Kind::kMessage:
        if (network_.Reachable(now_, event.to)) Hear(rank, event.from, event.message);
    }
    GoOn(rank);
  }

  void Hear(Rank& rank, int from, const SwitchMessage& message) {
    switch (message.kind) {
      case SwitchKind::kPrepare:
        return HearPrepare(rank, message);
      case SwitchKind::kPledge:
      case SwitchKind::kRefuse:
        Say(rank, leader_.TakeAnswer(from, message, rank.gate.calls()));
        return CountOutcome();
      case SwitchKind::kVerdict:
        (void)rank.member.TakeVerdict(message.attempt, message.commit);
        return;
      case SwitchKind::kAsk:
        return Say(rank, IndexOf(rank) == 0 ? leader_.AnswerPeer(from, message.attempt)
                                            : rank.member.AnswerPeer(from, message.attempt));
    }
  }

  void HearPrepare(Rank& rank, const SwitchMessage& prepare) {
    rank.member.Prepare(prepare, prepare.version != unusable_version_ || IndexOf(rank) != unusable_rank_);
    if (!random_.Chance(faults_.interrupted)) return Say(rank, rank.member.Answer());
    // Interrupted between arming and answering: meanwhile only the issuing thread runs.
    rank.control_free_ns = now_ + 1 + random_.Waiting(faults_.delay_ns);
    const int index = IndexOf(rank);
    network_.Schedule({rank.control_free_ns, 0, Event::Kind::kAnswerDue, index, index, {}});
  }

  void GoOn(Rank& rank) {
    if (rank.waiting && !rank.crashed) rank.call_ns = now_;
  }

  void Say(Rank& rank, const SwitchSends& sends) {
    const int from = IndexOf(rank);
    for (const SwitchSend& send : sends) {
      counts_.asks += send.message.kind == SwitchKind::kAsk ? 1 : 0;
      for (int to = 0; to < faults_.n_ranks; ++to) {
        const bool to_self = to == from && send.message.kind == SwitchKind::kAsk;
        if ((send.to != kAllRanks && send.to != to) || to_self) continue;
        if (from == faults_.crashing_rank && ++rank.sent >= faults_.crash_at_message) return Crash(rank);
        network_.Send(now_, from, to, send.message);
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
  }

  // ---- the ends ----
  void Crash(Rank& rank) {
    if (rank.crashed) return;
    rank.crashed = true;
    rank.waiting = rank.blocked = false;
    rank.call_ns = rank.tick_ns = kNeverNs;
    ++counts_.crashes;
    const int64_t noticed = now_ + random_.AcrossScales(100'000, 2'000'000'000);
    network_.Schedule({noticed, 0, Event::Kind::kRankLost, 0, IndexOf(rank), {}});
    // A collective cannot end without the rank: sooner or later somebody's watchdog aborts the communicator.
    abort_ns_ = std::min(abort_ns_, now_ + random_.AcrossScales(1'000'000, 4'000'000'000));
  }

  void AbortCommunicator() {
    over_ = true;
    for (Rank& rank : ranks_) {
      rank.gate.Release();
      if (rank.waiting && !rank.gate.TryPass(rank.next_call)) {
        failure_ =
            fmt::format("ENDLESS WAIT: rank {} at call {} after an abort", IndexOf(rank), rank.next_call);
      }
    }
  }

  void BecomeCalm() {
    calm_ = true;
    StopFaults(faults_);
    faults_.crashing_rank = -1;
    for (Rank& rank : ranks_) {
      rank.control_free_ns = std::min(rank.control_free_ns, now_ + 1'000'000);
      rank.call_ns = rank.call_ns == kNeverNs ? kNeverNs : std::min(rank.call_ns, now_ + faults_.call_ns);
    }
    ++version_;
    unusable_version_ = 0;
    // Time-outs and old messages; then the farthest boundary, and one that was committed before it.
    deadline_ns_ = now_ + 150'000'000'000 + 3 * static_cast<int64_t>(kMostSwitchDistance) * faults_.call_ns;
  }

  void CheckConvergence() {
    // First everybody must come through what was begun, without a new attempt that would wake them up.
    const bool settled =
        std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& r) { return r.gate.idle(); });
    if (settled && !requested_last_) requested_last_ = leader_.Request({SwitchReason::kOperator, version_});
    if (now_ < deadline_ns_) {
      for (const Rank& rank : ranks_) {
        if (rank.waiting || rank.gate.version() != version_) return;
      }
      over_ = true;
      ++counts_.converged;
      return;
    }
    for (const Rank& rank : ranks_) {
      if (rank.waiting)
        failure_ = fmt::format("ENDLESS WAIT: rank {} at call {}", IndexOf(rank), rank.next_call);
    }
    if (failure_.empty()) failure_ = fmt::format("NO CONVERGENCE: v{} is not everywhere", version_);
  }

  int IndexOf(const Rank& rank) const { return static_cast<int>(&rank - ranks_.data()); }

  static constexpr int64_t kHeldUpNs = 6'000'000'000;  // longer than any fault that ends by itself
  static constexpr uint64_t kUndecided = ~uint64_t{0};
  static constexpr uint64_t kStructureBits = UINT32_MAX;

  SeededRandom random_;
  SimulatedFaults faults_;
  SimulatedNetwork<SwitchMessage> network_;
  SwitchLeader leader_;
  std::array<Rank, kMostSimulatedRanks> all_ranks_;
  const std::span<Rank> ranks_{all_ranks_.data(), static_cast<size_t>(faults_.n_ranks)};
  std::vector<uint64_t> decided_;  // by call: table version and structure
  const uint64_t decisions_until_calm_;
  int64_t now_ = 0;
  int64_t decided_ns_ = 0;
  int64_t request_ns_ = 0;
  int64_t abort_ns_ = kNeverNs;
  int64_t deadline_ns_ = kNeverNs;
  uint32_t version_ = 0;
  uint32_t unusable_version_ = 0;
  int unusable_rank_ = -1;
  bool calm_ = false;
  bool requested_last_ = false;
  bool over_ = false;
  SimulationCounts counts_;
  std::string failure_;
};

}  // namespace dynamiccl::testing
