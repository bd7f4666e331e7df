// SPDX-License-Identifier: Apache-2.0
// Rules that make a switch safe:
//  1. The leader commits only when every rank has pledged this very attempt.
//  2. A verdict never changes. A pledge of an attempt that is already decided is answered with the verdict.
//  3. There is one attempt at a time, with rising numbers. A rank that pledges a later attempt knows how the
//     earlier one ended.
#include "src/decision/switching/switch_leader.h"

#include <algorithm>
#include <utility>

#include "src/decision/switching/switch_member.h"

namespace dynamiccl {
namespace {

// The boundary lies as many calls ahead as are issued in this many round trips: one for the prepare, one in
// reserve, and two more because each of these may lose a message.
constexpr uint64_t kRoundTripsAhead = 4;
// The leader calls an attempt off when 1/kReservedPart of the calls up to the boundary is left, so that the
// abort arrives before the boundary.
constexpr uint64_t kReservedPart = 4;

}  // namespace

bool SwitchLeader::Request(const SwitchRequest& request) {
  if (n_lost_ > 0 || (wanted_ && wanted_->reason > request.reason)) return false;
  wanted_ = request;
  failures_ = 0;
  return true;
}

bool SwitchLeader::MayBegin(int64_t now_ns, uint64_t own_calls) const {
  if (!wanted_ || preparing_ || n_lost_ > 0) return false;
  if (wanted_->reason == SwitchReason::kAdoption && now_ns < adopt_from_ns_) return false;
  // Ranks join no new attempt before they have reached the boundary of the last committed one.
  return last_commit_ == 0 || own_calls > committed_from_;
}

// Each attempt that failed because its boundary was too near doubles the distance.
uint64_t SwitchLeader::Distance() const {
  const uint64_t calls = std::max(kLeastSwitchDistance, run_ahead_ + kRoundTripsAhead * round_trip_);
  return std::min(calls << std::min(too_near_, 16), kMaxSwitchDistance);
}

SwitchMessage SwitchLeader::Begin(int64_t now_ns, uint64_t own_calls) {
  attempted_ = *wanted_;
  preparing_ = true;
  ++attempt_;
  distance_ = Distance();
  boundary_ = own_calls + distance_;
  asked_at_ = own_calls;
  run_ahead_ = round_trip_ = 0;
  std::fill(answered_.begin(), answered_.end(), uint8_t{0});
  n_answered_ = 0;
  begun_ns_ = now_ns;
  repeat_ns_ = now_ns + kSwitchRepeatNs;
  return Prepare();
}

SwitchMessage SwitchLeader::Prepare() const {
  SwitchMessage message;
  message.kind = SwitchKind::kPrepare;
  message.attempt = attempt_;
  message.boundary = boundary_;
  message.version = attempted_.version;
  return message;
}

SwitchMessage SwitchLeader::Verdict(uint64_t attempt, bool commit) const {
  SwitchMessage message;
  message.kind = SwitchKind::kVerdict;
  message.attempt = attempt;
  message.commit = commit;
  return message;
}

SwitchMessage SwitchLeader::Commit() {
  preparing_ = false;
  last_commit_ = attempt_;
  committed_from_ = boundary_;
  const bool newest = wanted_ && wanted_->version == attempted_.version;
  if (newest) wanted_.reset();
  failures_ = too_near_ = 0;
  if (attempted_.reason == SwitchReason::kAdoption) adopt_from_ns_ = begun_ns_ + kAdoptionSpacingNs;
  outcome_ = {SwitchOutcome::End::kCommitted, attempted_.version, -1, true};
  return Verdict(attempt_, true);
}

SwitchMessage SwitchLeader::Abort(SwitchOutcome::End end, int rank) {
  preparing_ = false;
  const bool newest = wanted_ && wanted_->version == attempted_.version;
  const bool hopeless = end == SwitchOutcome::End::kRankCannot || end == SwitchOutcome::End::kRankLost;
  const bool tired =
      newest && ++failures_ >= kMaxAdoptionAttempts && attempted_.reason == SwitchReason::kAdoption;
  if (newest && (hopeless || tired)) wanted_.reset();
  outcome_ = {end, attempted_.version, rank, !newest || hopeless || tired};
  return Verdict(attempt_, false);
}

void SwitchLeader::Measure(const SwitchMessage& answer, uint64_t own_calls) {
  round_trip_ = std::max(round_trip_, own_calls - asked_at_);
  if (answer.calls > own_calls) run_ahead_ = std::max(run_ahead_, answer.calls - own_calls);
}

SwitchSends SwitchLeader::HandleAnswer(int rank, const SwitchMessage& answer, uint64_t own_calls) {
  if (answer.attempt != attempt_ || !preparing_) return AnswerPeer(rank, answer.attempt);
  SwitchSends sends;
  if (answered_[static_cast<size_t>(rank)] != 0) return sends;
  Measure(answer, own_calls);
  if (answer.kind == SwitchKind::kRefuse) {
    const bool cannot = answer.refusal == Refusal::kUnusableTable;
    if (answer.refusal == Refusal::kPassed) ++too_near_;
    sends.Add(kAllRanks,
              Abort(cannot ? SwitchOutcome::End::kRankCannot : SwitchOutcome::End::kRankPassed, rank));
    return sends;
  }
  answered_[static_cast<size_t>(rank)] = 1;
  if (++n_answered_ == static_cast<int>(answered_.size())) sends.Add(kAllRanks, Commit());
  return sends;
}

SwitchSends SwitchLeader::AnswerPeer(int rank, uint64_t attempt) const {
  SwitchSends sends;
  const bool open = attempt == attempt_ && preparing_;
  // No rank waits for the verdict of an attempt before the last commit, because that commit needed the
  // pledges of all ranks.
  if (!open && attempt <= attempt_ && attempt >= last_commit_) {
    sends.Add(rank, Verdict(attempt, attempt == last_commit_));
  }
  return sends;
}

SwitchSends SwitchLeader::LoseRank(int rank) {
  SwitchSends sends;
  if (std::exchange(lost_[static_cast<size_t>(rank)], uint8_t{1}) != 0) return sends;
  ++n_lost_;
  if (preparing_) sends.Add(kAllRanks, Abort(SwitchOutcome::End::kRankLost, rank));
  wanted_.reset();
  return sends;
}

void SwitchLeader::RegainRank(int rank) {
  n_lost_ -= std::exchange(lost_[static_cast<size_t>(rank)], uint8_t{0});
}

int SwitchLeader::FirstSilent() const {
  return static_cast<int>(std::find(answered_.begin(), answered_.end(), uint8_t{0}) - answered_.begin());
}

SwitchSends SwitchLeader::Tick(int64_t now_ns, uint64_t own_calls) {
  SwitchSends sends;
  if (preparing_) {
    const bool near = own_calls + distance_ / kReservedPart >= boundary_;
    const bool preempted = wanted_ && wanted_->reason == SwitchReason::kRevocation &&
                           attempted_.reason != SwitchReason::kRevocation;
    if (near) {
      ++too_near_;
      round_trip_ = std::max(round_trip_, own_calls - asked_at_);
    }
    if (near || now_ns >= begun_ns_ + kSwitchAttemptNs) {
      sends.Add(kAllRanks, Abort(SwitchOutcome::End::kRankSilent, FirstSilent()));
    } else if (preempted) {
      sends.Add(kAllRanks, Abort(SwitchOutcome::End::kSuperseded, -1));
    } else if (now_ns >= repeat_ns_) {
      repeat_ns_ = now_ns + kSwitchRepeatNs;
      sends.Add(kAllRanks, Prepare());
    }
  }
  if (MayBegin(now_ns, own_calls)) sends.Add(kAllRanks, Begin(now_ns, own_calls));
  return sends;
}

std::optional<SwitchOutcome> SwitchLeader::TakeOutcome() {
  const auto outcome = outcome_;
  outcome_.reset();
  return outcome;
}

}  // namespace dynamiccl
