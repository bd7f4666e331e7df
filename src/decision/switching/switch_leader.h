// SPDX-License-Identifier: Apache-2.0
// The leader's part in switching the table of a communicator: it asks all ranks, its own included, to pledge
// themselves to a call number, and gives the verdict. Protocol and proof obligations: docs/switching.md.
// Control thread only; time is passed in.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/decision/switching/switch_message.h"

namespace dynamiccl {

// A boundary lies at least this many calls ahead.
inline constexpr uint64_t kLeastSwitchDistance = 8;
// And at most: what a job issues in seconds. More would only put off the switch.
inline constexpr uint64_t kMaxSwitchDistance = 16384;
// An attempt that not all ranks have answered by then is called off.
inline constexpr int64_t kSwitchAttemptNs = 1'000'000'000;
// Between two adoptions.
inline constexpr int64_t kAdoptionSpacingNs = 5'000'000'000;
// After so many failures an adoption is given up; operators and revocations never are.
inline constexpr int kMaxAdoptionAttempts = 8;

// In rising urgency: a request replaces one that is not more urgent than it.
enum class SwitchReason : uint8_t { kAdoption, kOperator, kRevocation };

struct SwitchRequest {
  SwitchReason reason = SwitchReason::kAdoption;
  uint32_t version = 0;  // higher than that of any request before
};

// How the last attempt that ended did so.
struct SwitchOutcome {
  enum class End : uint8_t { kCommitted, kRankPassed, kRankCannot, kRankSilent, kRankLost, kSuperseded };
  End end = End::kCommitted;
  uint32_t version = 0;
  int rank = -1;              // that refused, was silent or is lost
  bool request_ended = true;  // false: it is tried again
};

class SwitchLeader {
 public:
  // The leader is rank 0 of `n_ranks`.
  explicit SwitchLeader(int n_ranks) : answered_(static_cast<size_t>(n_ranks)) {}

  // The next Tick begins it. False when a rank is lost, or a more urgent request waits.
  bool Request(const SwitchRequest& request);
  // kPledge or kRefuse of `rank`. `own_calls`: calls that the leader's own rank has begun.
  SwitchSends TakeAnswer(int rank, const SwitchMessage& answer, uint64_t own_calls);
  // kAsk of `rank`.
  SwitchSends AnswerPeer(int rank, uint64_t attempt) const;
  // The rank's process or connection is gone for good: no further switch.
  SwitchSends LoseRank(int rank);
  // Some milliseconds have passed.
  SwitchSends Tick(int64_t now_ns, uint64_t own_calls);

  // True while a request waits or an attempt has no verdict.
  bool busy() const { return wanted_.has_value() || preparing_; }
  // Once for each attempt that ended.
  std::optional<SwitchOutcome> TakeOutcome();

  // Every word of its state that its later acts depend on, for exploring states.
  template <class Visit>
  void VisitState(Visit visit) const {
    visit(wanted_ ? uint64_t{wanted_->version} << 8 | static_cast<uint64_t>(wanted_->reason) : ~uint64_t{0});
    visit(uint64_t{attempted_.version} << 8 | static_cast<uint64_t>(attempted_.reason));
    visit(uint64_t{preparing_} << 1 | uint64_t{lost_});
    for (const uint64_t word : {attempt_, last_commit_, boundary_, committed_from_, distance_}) visit(word);
    for (const uint8_t answered : answered_) visit(answered);
    visit(static_cast<uint64_t>(failures_) << 32 | static_cast<uint64_t>(too_near_));
    for (const uint64_t word : {asked_at_, round_trip_, run_ahead_}) visit(word);
    for (const int64_t time : {begun_ns_, repeat_ns_, adopt_from_ns_}) visit(static_cast<uint64_t>(time));
  }

 private:
  bool MayBegin(int64_t now_ns, uint64_t own_calls) const;
  uint64_t Distance() const;
  SwitchMessage Begin(int64_t now_ns, uint64_t own_calls);
  SwitchMessage Prepare() const;
  SwitchMessage Verdict(uint64_t attempt, bool commit) const;
  SwitchMessage Commit();
  SwitchMessage Abort(SwitchOutcome::End end, int rank);
  int FirstSilent() const;
  void Measure(const SwitchMessage& answer, uint64_t own_calls);

  std::optional<SwitchRequest> wanted_;
  SwitchRequest attempted_;      // request of attempt_
  bool preparing_ = false;       // attempt_ has no verdict
  uint64_t attempt_ = 0;         // the last one begun
  uint64_t last_commit_ = 0;     // attempt of the last commit
  uint64_t boundary_ = 0;        // of attempt_
  uint64_t committed_from_ = 0;  // boundary of the last commit
  uint64_t distance_ = 0;        // of attempt_
  std::vector<uint8_t> answered_;
  int n_answered_ = 0;
  int failures_ = 0;  // of wanted_
  int too_near_ = 0;  // of these, because the boundary was too near
  bool lost_ = false;
  // What the distance is made of, in calls of this rank.
  uint64_t asked_at_ = 0;
  uint64_t round_trip_ = 0;
  uint64_t run_ahead_ = 0;
  int64_t begun_ns_ = 0;
  int64_t repeat_ns_ = 0;
  int64_t adopt_from_ns_ = 0;
  std::optional<SwitchOutcome> outcome_;
};

}  // namespace dynamiccl
