// SPDX-License-Identifier: Apache-2.0
// One rank's part in switching the table of a communicator: it arms the boundary, pledges, and follows the
// verdict. Protocol and proof obligations: docs/switching.md.
#pragma once

#include "src/decision/switching/call_gate.h"
#include "src/decision/switching/switch_message.h"

namespace dynamiccl {

// If a pledge or a question has no answer after this many nanoseconds, it is sent again. This is some round
// trips of a slow network.
inline constexpr int64_t kSwitchRepeatNs = 50'000'000;
// A rank that has waited at the boundary for this many nanoseconds asks its peers. This is far above a round
// trip, so the leader's verdict is then late or lost.
inline constexpr int64_t kSwitchAskNs = 10'000'000;

// The state of one rank for one communicator, owned by its SwitchThread (plugin/runtime). Control thread
// only; time is an argument. A rank that has pledged drops its boundary only on a verdict, so it may wait as
// long as the leader is silent and no peer knows the verdict. CallGate::Release ends such a wait.
class SwitchMember {
 public:
  // `gate` is the gate of this rank's communicator; it must outlive this object.
  explicit SwitchMember(CallGate& gate) : gate_(&gate) {}
  // Copies the state to another gate, for tests that explore states.
  SwitchMember(const SwitchMember& other, CallGate& gate) : SwitchMember(other) { gate_ = &gate; }

  // Takes the leader's kPrepare and arms the boundary. `usable`: this rank has verified the table of that
  // version. Call Answer afterwards.
  void Prepare(const SwitchMessage& prepare, bool usable);
  // Returns what this rank sends to the leader about the last kPrepare: a pledge, a refusal, or nothing.
  SwitchSends Answer();
  // Takes a kVerdict from the leader or from a peer. Returns true if it commits the attempt that this rank
  // has pledged.
  bool ApplyVerdict(uint64_t attempt, bool commit);
  // Answers a peer's kAsk. A rank that has not pledged the attempt will never pledge it after this.
  SwitchSends AnswerPeer(int from, uint64_t attempt);
  // Repeats the pledge. If this rank has waited too long at the boundary, asks its peers for the verdict.
  // Call it every few milliseconds.
  SwitchSends Tick(int64_t now_ns);

  // Visits every word of the state but the gate, for tests that explore states.
  template <class Visit>
  void VisitState(Visit visit) const {
    for (const uint64_t word : {answered_attempt_, pending_, committed_, asked_, boundary_}) visit(word);
    visit(uint64_t{pledged_} << 8 | static_cast<uint64_t>(why_));
    visit(static_cast<uint64_t>(repeat_ns_));
    visit(static_cast<uint64_t>(ask_ns_));
  }

 private:
  bool pending() const { return pending_ != 0; }
  // Makes a message of this rank.
  SwitchMessage MakeMessage(SwitchKind kind, uint64_t attempt) const;
  SwitchMessage Refuse(uint64_t attempt, Refusal why) const;
  // Disarms the gate and forgets the pending attempt.
  void Drop(Refusal why);

  CallGate* gate_;
  uint64_t answered_attempt_ = 0;    // highest attempt that this rank has answered or refused for good
  uint64_t pending_ = 0;             // armed attempt without a verdict; 0: none
  uint64_t committed_ = 0;           // attempt of the last committed version
  uint64_t asked_ = 0;               // attempt that Answer is about; 0: none
  uint64_t boundary_ = 0;            // boundary of pending_
  bool pledged_ = false;             // this rank pledged pending_
  Refusal why_ = Refusal::kDecided;  // why answered_attempt_ was not pledged
  int64_t repeat_ns_ = 0;            // when to send the pledge again; 0: not planned
  int64_t ask_ns_ = 0;               // when to ask the peers; 0: not waiting
};

}  // namespace dynamiccl
