// SPDX-License-Identifier: Apache-2.0
// Rules that make a switch safe:
//  1. The gate is armed before the rank's number of calls is read, and this is read before a pledge is sent.
//  2. A rank that has pledged drops its boundary only on a verdict, never on a time-out of its own.
//  3. A rank never pledges an attempt that it has refused, or about which it has told a peer that it will not
//     commit.
#include "src/decision/switching/switch_member.h"

namespace dynamiccl {
namespace {

// Rank of the leader.
constexpr int kLeader = 0;

}  // namespace

SwitchMessage SwitchMember::MakeMessage(SwitchKind kind, uint64_t attempt) const {
  SwitchMessage message;
  message.kind = kind;
  message.attempt = attempt;
  message.calls = gate_->calls();
  return message;
}

SwitchMessage SwitchMember::Refuse(uint64_t attempt, Refusal why) const {
  SwitchMessage message = MakeMessage(SwitchKind::kRefuse, attempt);
  message.refusal = why;
  return message;
}

void SwitchMember::Drop(Refusal why) {
  gate_->Disarm();
  pending_ = 0;
  pledged_ = false;
  why_ = why;
  repeat_ns_ = ask_ns_ = 0;
}

void SwitchMember::Prepare(const SwitchMessage& prepare, bool usable) {
  // If an earlier attempt still has no verdict, Answer is about that attempt.
  asked_ = pending() ? pending_ : prepare.attempt;
  if (pending() || prepare.attempt <= answered_attempt_) return;
  if (!gate_->idle()) {
    // The last switch is committed, but its boundary is still ahead, so this rank does not answer. The leader
    // will ask again.
    asked_ = 0;
    return;
  }
  answered_attempt_ = prepare.attempt;
  why_ = Refusal::kUnusableTable;
  if (!usable) return;
  pending_ = prepare.attempt;
  boundary_ = prepare.boundary;
  gate_->Arm(prepare.boundary, prepare.version);
}

SwitchSends SwitchMember::Answer() {
  SwitchSends sends;
  const uint64_t attempt = asked_;
  asked_ = 0;
  if (attempt == 0) return sends;
  if (pending() && !pledged_ && gate_->Reached(boundary_)) Drop(Refusal::kPassed);
  if (pending_ == attempt) {
    pledged_ = true;
    sends.Add(kLeader, MakeMessage(SwitchKind::kPledge, attempt));
  } else if (attempt == answered_attempt_ && attempt != committed_) {
    sends.Add(kLeader, Refuse(attempt, why_));
  }
  return sends;
}

bool SwitchMember::ApplyVerdict(uint64_t attempt, bool commit) {
  if (attempt != pending_ || !pending()) return false;
  if (!commit) {
    Drop(Refusal::kDecided);
    return false;
  }
  if (!pledged_) return false;
  gate_->Commit();
  committed_ = attempt;
  pending_ = 0;
  pledged_ = false;
  repeat_ns_ = ask_ns_ = 0;
  return true;
}

SwitchSends SwitchMember::AnswerPeer(int from, uint64_t attempt) {
  SwitchSends sends;
  if (attempt == pending_) return sends;
  if (attempt > answered_attempt_) {
    // The attempt cannot commit without this rank's pledge, so the rank may decide never to pledge it.
    answered_attempt_ = attempt;
    why_ = Refusal::kDecided;
  }
  SwitchMessage verdict = MakeMessage(SwitchKind::kVerdict, attempt);
  verdict.commit = attempt == committed_;
  // No rank waits for the verdict of an attempt before this rank's last commit, because that commit needed
  // the pledges of all ranks.
  if (attempt >= committed_) sends.Add(from, verdict);
  return sends;
}

SwitchSends SwitchMember::Tick(int64_t now_ns) {
  SwitchSends sends;
  if (!pledged_) return sends;
  if (repeat_ns_ == 0) repeat_ns_ = now_ns + kSwitchRepeatNs;
  if (now_ns >= repeat_ns_) {
    repeat_ns_ = now_ns + kSwitchRepeatNs;
    sends.Add(kLeader, MakeMessage(SwitchKind::kPledge, pending_));
  }
  if (!gate_->Reached(boundary_)) return sends;
  if (ask_ns_ == 0) ask_ns_ = now_ns + kSwitchAskNs;
  if (now_ns >= ask_ns_) {
    ask_ns_ = now_ns + kSwitchRepeatNs;
    sends.Add(kAllRanks, MakeMessage(SwitchKind::kAsk, pending_));
  }
  return sends;
}

}  // namespace dynamiccl
