// SPDX-License-Identifier: Apache-2.0
// The leader's part in switching the table of a communicator. It asks all ranks, including its own, to pledge
// to switch at a call number, and gives the verdict. Protocol and proof obligations: docs/switching.md.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/decision/switching/switch_message.h"

namespace dynamiccl {

// The boundary lies at least this many calls ahead. A leader that has measured nothing yet must leave the
// ranks some time to answer (docs/switching.md).
inline constexpr uint64_t kLeastSwitchDistance = 8;
// The boundary lies at most this many calls ahead, which a job issues in seconds. More would only delay the
// switch.
inline constexpr uint64_t kMaxSwitchDistance = 16384;
// An attempt is called off after this many nanoseconds without an answer from all ranks.
inline constexpr int64_t kSwitchAttemptNs = 1'000'000'000;
// Nanoseconds between two adoptions (docs/switching.md).
inline constexpr int64_t kAdoptionSpacingNs = 250'000'000;
// A request to adopt is dropped after this many failed attempts. Requests of operators and revocations are
// never dropped.
inline constexpr int kMaxAdoptionAttempts = 8;

// The reason for which tables are switched, in rising urgency. A request replaces a waiting one that is not
// more urgent.
enum class SwitchReason : uint8_t { kAdoption, kOperator, kRevocation };

// A requested switch.
struct SwitchRequest {
  SwitchReason reason = SwitchReason::kAdoption;
  uint32_t version = 0;  // higher than in all earlier requests
};

// Result of one attempt to switch.
struct SwitchOutcome {
  // kCommitted: all ranks pledged. kRankPassed: a rank was already at the boundary. kRankCannot: a rank does
  // not have the table. kRankSilent: a rank did not answer in time. kRankLost: a rank is gone. kSuperseded: a
  // revocation came before the end of the attempt.
  enum class End : uint8_t { kCommitted, kRankPassed, kRankCannot, kRankSilent, kRankLost, kSuperseded };
  End end = End::kCommitted;
  uint32_t version = 0;
  int rank = -1;              // the rank that refused, was silent or is lost; -1: none
  bool request_ended = true;  // false: the leader will try the request again
};

// The leader's state for one communicator, owned by the leader's SwitchLeadership (plugin/runtime). Control
// thread only; time is an argument. Functions return the messages to send. Sending may fail, because messages
// are repeated. A verdict never changes, and an attempt commits only if every rank has pledged it.
class SwitchLeader {
 public:
  // Makes the state of the leader, which is rank 0 of `n_ranks`.
  explicit SwitchLeader(int n_ranks)
      : answered_(static_cast<size_t>(n_ranks)), lost_(static_cast<size_t>(n_ranks)) {}

  // Accepts a request, which the next Tick begins. Returns false and changes nothing if a rank is lost or a
  // more urgent request waits.
  bool Request(const SwitchRequest& request);
  // Takes a kPledge or kRefuse of `rank`. `own_calls`: number of calls that the leader's own rank has begun.
  SwitchSends HandleAnswer(int rank, const SwitchMessage& answer, uint64_t own_calls);
  // Answers a kAsk of `rank`.
  SwitchSends AnswerPeer(int rank, uint64_t attempt) const;
  // Call this when the rank's process or connection is gone. The attempt under way ends, the waiting request
  // is dropped, and no further switch is possible until the rank is back.
  SwitchSends LoseRank(int rank);
  // Call this when the rank's former process, not a new one, has connected again. The rank has kept its
  // state; at most messages were lost.
  void RegainRank(int rank);
  // Begins, repeats or calls off an attempt. Call it every few milliseconds.
  SwitchSends Tick(int64_t now_ns, uint64_t own_calls);

  // True while a request waits or an attempt has no verdict.
  bool busy() const { return wanted_.has_value() || preparing_; }
  // True while a rank is gone.
  bool lacks_rank() const { return n_lost_ > 0; }
  // Returns the outcome of an attempt once, after it ended.
  std::optional<SwitchOutcome> TakeOutcome();

  // Visits every word of the state on which later actions depend, for tests that explore states.
  template <class Visit>
  void VisitState(Visit visit) const {
    visit(wanted_ ? uint64_t{wanted_->version} << 8 | static_cast<uint64_t>(wanted_->reason) : ~uint64_t{0});
    visit(uint64_t{attempted_.version} << 8 | static_cast<uint64_t>(attempted_.reason));
    visit(uint64_t{preparing_} << 32 | static_cast<uint64_t>(n_lost_));
    for (const uint64_t word : {attempt_, last_commit_, boundary_, committed_from_, distance_}) visit(word);
    for (const uint8_t answered : answered_) visit(answered);
    for (const uint8_t lost : lost_) visit(lost);
    visit(static_cast<uint64_t>(failures_) << 32 | static_cast<uint64_t>(too_near_));
    for (const uint64_t word : {asked_at_, round_trip_, run_ahead_}) visit(word);
    for (const int64_t time : {begun_ns_, repeat_ns_, adopt_from_ns_}) visit(static_cast<uint64_t>(time));
  }

 private:
  // True if the waiting request may begin an attempt now.
  bool MayBegin(int64_t now_ns, uint64_t own_calls) const;
  // Returns the number of calls from now to the boundary of the next attempt, computed from what the last
  // attempt measured.
  uint64_t Distance() const;
  SwitchMessage Begin(int64_t now_ns, uint64_t own_calls);
  SwitchMessage Prepare() const;
  SwitchMessage Verdict(uint64_t attempt, bool commit) const;
  SwitchMessage Commit();
  SwitchMessage Abort(SwitchOutcome::End end, int rank);
  // Returns the first rank that has not answered.
  int FirstSilent() const;
  void Measure(const SwitchMessage& answer, uint64_t own_calls);

  // The request that waits or is being attempted, and the request of attempt_, which may be an older request.
  std::optional<SwitchRequest> wanted_;
  SwitchRequest attempted_;
  bool preparing_ = false;         // attempt_ has no verdict yet
  uint64_t attempt_ = 0;           // number of the last attempt begun
  uint64_t last_commit_ = 0;       // number of the last attempt that committed
  uint64_t boundary_ = 0;          // boundary of attempt_
  uint64_t committed_from_ = 0;    // boundary of the last commit
  uint64_t distance_ = 0;          // distance of attempt_'s boundary when it began
  std::vector<uint8_t> answered_;  // by rank: 1 once it pledged attempt_
  int n_answered_ = 0;
  int failures_ = 0;           // failed attempts of wanted_
  int too_near_ = 0;           // failed attempts whose boundary was too near
  std::vector<uint8_t> lost_;  // by rank: 1 while it is gone
  int n_lost_ = 0;
  // Distance computes the boundary from these three, in calls of the leader's rank: the call at which the
  // ranks were asked, the longest round trip, and how far another rank was ahead.
  uint64_t asked_at_ = 0;
  uint64_t round_trip_ = 0;
  uint64_t run_ahead_ = 0;
  // Points in time: when the attempt began, when to repeat it, and from when on an adoption may begin.
  int64_t begun_ns_ = 0;
  int64_t repeat_ns_ = 0;
  int64_t adopt_from_ns_ = 0;
  std::optional<SwitchOutcome> outcome_;
};

}  // namespace dynamiccl
