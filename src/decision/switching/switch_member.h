// SPDX-License-Identifier: Apache-2.0
// One rank's part in switching the table of a communicator: it arms the boundary, then pledges, then keeps to
// the verdict. Protocol and proof obligations: docs/switching.md. Control thread only; time is passed in.
#pragma once

#include "src/decision/switching/call_gate.h"
#include "src/decision/switching/switch_message.h"

namespace dynamiccl {

// A pledge or a question without an answer is said again after this: some round trips of a slow network.
inline constexpr int64_t kSwitchRepeatNs = 50'000'000;
// A rank that waits at the boundary asks its peers after this: far above a round trip, so the leader's
// verdict is late or lost.
inline constexpr int64_t kSwitchAskNs = 10'000'000;

class SwitchMember {
 public:
  // `gate` of this rank's communicator outlives it.
  explicit SwitchMember(CallGate& gate) : gate_(&gate) {}
  // The same state at another gate, for exploring states.
  SwitchMember(const SwitchMember& other, CallGate& gate) : SwitchMember(other) { gate_ = &gate; }

  // The leader's kPrepare arrived. `usable`: this rank has verified the table of that version. Arms the
  // boundary and says nothing; Answer does, and must come after it.
  void Prepare(const SwitchMessage& prepare, bool usable);
  // What this rank says to the leader about the last kPrepare.
  SwitchSends Answer();
  // kVerdict, from the leader or from a peer. True when it committed the attempt that this rank is pledged
  // to.
  bool TakeVerdict(uint64_t attempt, bool commit);
  // A peer's kAsk.
  SwitchSends AnswerPeer(int from, uint64_t attempt);
  // Some milliseconds have passed.
  SwitchSends Tick(int64_t now_ns);

  // Every word of its state but the gate, for exploring states.
  template <class Visit>
  void VisitState(Visit visit) const {
    for (const uint64_t word : {heard_, pending_, committed_, asked_, boundary_}) visit(word);
    visit(uint64_t{pledged_} << 8 | static_cast<uint64_t>(why_));
    visit(static_cast<uint64_t>(repeat_ns_));
    visit(static_cast<uint64_t>(ask_ns_));
  }

 private:
  bool pending() const { return pending_ != 0; }
  SwitchMessage Say(SwitchKind kind, uint64_t attempt) const;
  SwitchMessage Refuse(uint64_t attempt, Refusal why) const;
  void Drop(Refusal why);

  CallGate* gate_;
  uint64_t heard_ = 0;               // highest attempt that this rank has answered or refused for ever
  uint64_t pending_ = 0;             // attempt for which the gate is armed and no verdict is known; 0: none
  uint64_t committed_ = 0;           // attempt of the last committed version
  uint64_t asked_ = 0;               // attempt that Answer is about; 0: none
  uint64_t boundary_ = 0;            // of pending_
  bool pledged_ = false;             // for pending_
  Refusal why_ = Refusal::kDecided;  // why heard_ was not pledged
  int64_t repeat_ns_ = 0;            // when to say the pledge again; 0: not planned
  int64_t ask_ns_ = 0;               // when to ask the peers; 0: not waiting
};

}  // namespace dynamiccl
