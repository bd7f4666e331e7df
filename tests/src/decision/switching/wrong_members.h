// SPDX-License-Identifier: Apache-2.0
// Members that each break one rule of the protocol, and a structure step on another thread. They seem right
// in a quiet run, so the harness must find that they diverge or wait for ever.
#pragma once

#include <deque>
#include <utility>

#include "src/decision/switching/switch_member.h"
#include "tests/src/decision/switching/simulated_faults.h"

namespace dynamiccl::testing {

// Does not pledge and at once does what the leader announces. It sends a pledge only so that the leader
// continues.
class SwitchesOnArrival {
 public:
  explicit SwitchesOnArrival(CallGate& gate) : gate_(gate) {}
  void Prepare(const SwitchMessage& prepare, bool usable) {
    asked_ = prepare.attempt;
    if (prepare.attempt <= answered_attempt_ || !usable) return;
    answered_attempt_ = prepare.attempt;
    ArmAt(gate_.calls(), prepare.version);
  }
  SwitchSends Answer() {
    SwitchSends sends;
    SwitchMessage pledge;
    pledge.kind = SwitchKind::kPledge;
    pledge.attempt = asked_;
    pledge.calls = gate_.calls();
    sends.Add(0, pledge);
    return sends;
  }
  void ApplyVerdict(uint64_t, bool) {}
  SwitchSends AnswerPeer(int, uint64_t) { return {}; }
  SwitchSends Tick(int64_t) { return {}; }

 protected:
  void ArmAt(uint64_t boundary, uint32_t version) {
    gate_.Arm(boundary, version);
    gate_.Commit();
  }

  CallGate& gate_;
  uint64_t asked_ = 0;
  uint64_t answered_attempt_ = 0;
};

// Switches at the announced call E, which is well ahead. Nothing ensures that all ranks learn of it in time.
class SwitchesAtAnnouncedCall : public SwitchesOnArrival {
 public:
  using SwitchesOnArrival::SwitchesOnArrival;
  void Prepare(const SwitchMessage& prepare, bool usable) {
    asked_ = prepare.attempt;
    if (prepare.attempt <= answered_attempt_ || !usable) return;
    answered_attempt_ = prepare.attempt;
    ArmAt(prepare.boundary, prepare.version);
  }
};

// Looks at its number of calls and pledges, but arms the gate only at its next step.
class PledgesBeforeArming {
 public:
  explicit PledgesBeforeArming(CallGate& gate) : gate_(gate), sound_(gate) {}
  void Prepare(const SwitchMessage& prepare, bool usable) {
    if (usable && prepare.attempt > answered_attempt_ && !gate_.Reached(prepare.boundary)) {
      answered_attempt_ = prepare.attempt;
      unarmed_ = prepare;
    } else if (prepare.attempt != unarmed_.attempt) {
      sound_.Prepare(prepare, usable);
    }
  }
  SwitchSends Answer() {
    if (unarmed_.attempt == 0) return sound_.Answer();
    SwitchSends sends;
    SwitchMessage pledge;
    pledge.kind = SwitchKind::kPledge;
    pledge.attempt = unarmed_.attempt;
    pledge.calls = gate_.calls();
    sends.Add(0, pledge);
    return sends;
  }
  void ApplyVerdict(uint64_t attempt, bool commit) {
    Arm();
    (void)sound_.ApplyVerdict(attempt, commit);
  }
  SwitchSends AnswerPeer(int from, uint64_t attempt) { return sound_.AnswerPeer(from, attempt); }
  SwitchSends Tick(int64_t now_ns) {
    Arm();
    return sound_.Tick(now_ns);
  }

 private:
  void Arm() {
    if (unarmed_.attempt == 0) return;
    sound_.Prepare(std::exchange(unarmed_, SwitchMessage{}), true);
    (void)sound_.Answer();
  }

  CallGate& gate_;
  SwitchMember sound_;
  SwitchMessage unarmed_;
  uint64_t answered_attempt_ = 0;
};

// Waits at the boundary for kPatienceNs, then keeps its table without a verdict.
class DecidesAloneInTheEnd : public SwitchMember {
 public:
  explicit DecidesAloneInTheEnd(CallGate& gate) : SwitchMember(gate), own_gate_(gate) {}
  void Prepare(const SwitchMessage& prepare, bool usable) {
    boundary_ = prepare.boundary;
    attempt_ = prepare.attempt;
    SwitchMember::Prepare(prepare, usable);
  }
  SwitchSends Tick(int64_t now_ns) {
    if (own_gate_.idle() || !own_gate_.Reached(boundary_)) since_ns_ = now_ns;
    if (now_ns - since_ns_ > kPatienceNs) (void)SwitchMember::ApplyVerdict(attempt_, false);
    return SwitchMember::Tick(now_ns);
  }

 private:
  static constexpr int64_t kPatienceNs = 100'000'000;
  CallGate& own_gate_;
  uint64_t boundary_ = 0;
  uint64_t attempt_ = 0;
  int64_t since_ns_ = 0;
};

// Sends each message once, so a lost message stays lost.
class SaysItOnce : public SwitchMember {
 public:
  explicit SaysItOnce(CallGate& gate) : SwitchMember(gate) {}
  SwitchSends Tick(int64_t) { return {}; }
};

// A state that depends on all calls so far: a few bits, equal on all ranks after equal calls, like the answer
// of the structure LSTM. It is updated on the issuing thread before its call returns.
class StepsOnCallingThread {
 public:
  uint32_t Read(int64_t) const { return state_; }
  void Step(uint64_t call, int64_t, SeededRandom&) { state_ = Next(state_, call); }

 protected:
  static uint32_t Next(uint32_t state, uint64_t call) {
    return (state * 31 + static_cast<uint32_t>(call % 7)) & 0xff;
  }
  uint32_t state_ = 0;
};

// Updates the same state on another thread. The update has nearly always finished when the next decision
// reads the state, but not always, so ranks may differ.
class StepsOnAnotherThread : public StepsOnCallingThread {
 public:
  uint32_t Read(int64_t now_ns) {
    while (!due_.empty() && due_.front().first <= now_ns) {
      state_ = Next(state_, due_.front().second);
      due_.pop_front();
    }
    return state_;
  }
  void Step(uint64_t call, int64_t now_ns, SeededRandom& random) {
    const int64_t begins = due_.empty() ? now_ns : due_.back().first;
    due_.emplace_back(begins + random.Waiting(kStepNs), call);
  }

 private:
  static constexpr int64_t kStepNs = 1'000;  // A step and the hand-over to the thread.
  std::deque<std::pair<int64_t, uint64_t>> due_;
};

}  // namespace dynamiccl::testing
