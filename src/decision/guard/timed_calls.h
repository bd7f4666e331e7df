// SPDX-License-Identifier: Apache-2.0
// Joins what a leader receives into what a guard reads: the calls that the leader's own rank decided, in
// their order, with the times that ranks report for them.
//
// A rank that comes early waits inside the kernel for the others. So the shortest of the ranks' times is the
// transfer, and the longest less the shortest is how far apart the ranks arrived. No common clock is needed.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "src/decision/guard/call_feed.h"

namespace dynamiccl {

// Ranks that report times at most: more would add little to the shortest of their times.
inline constexpr int kMaxTellers = 16;
// How many ranks of a communicator of `n_ranks` report times.
int TellersOf(int n_ranks);
// Number of a rank among those that report times, from 0; -1 if it is none of them.
int TellerOf(int rank, int n_ranks);

// One rank's time of one collective of a call, in nanoseconds.
struct CallTime {
  uint64_t call_number = 0;
  Collective collective = Collective::kAllReduce;
  int64_t ns = 0;

  friend bool operator==(const CallTime&, const CallTime&) = default;
};

// The join for one communicator, owned by its leader's table guard (plugin/runtime) and used by the control
// thread alone. Calls come out in the order in which they went in. Lost times delay a call by 5 s at most;
// the call then comes out without them. Memory is limited: of times without a call only the newest 4096 are
// kept.
class TimedCalls {
 public:
  // `tellers`: as from TellersOf.
  explicit TimedCalls(int tellers) : tellers_(tellers) {}

  // Adds a decided call. Calls come in their order. The same key twice in one call counts once; two keys of
  // the same collective in one call make both untimed, because their times cannot be told apart.
  void Add(const DecidedCall& call);
  // Adds what one rank reports, nearly in the order of calls, before or after the leader's own decision.
  // Reports from unknown ranks and about calls that are over are ignored.
  void TakeTimes(int teller, std::span<const CallTime> times);
  // Returns the oldest call once its times are known or will not come any more; else nothing. `now_ns` is the
  // clock of DecidedCall::issued_ns.
  std::optional<GuardedCall> Next(int64_t now_ns);
  // Calls that wait for times.
  size_t waiting() const { return calls_.size(); }

 private:
  using CallKey = std::pair<uint64_t, Collective>;
  // What ranks reported about one collective of a call, by the rank's number among the tellers.
  struct Told {
    // Nanoseconds of the longest event, because the collectives of a batch share a kernel; 0: none yet.
    std::array<int64_t, kMaxTellers> ns{};
    // Number of events reported.
    std::array<uint16_t, kMaxTellers> events{};
  };

  // True if the call need not wait any longer.
  bool Complete(const DecidedCall& call, int64_t now_ns) const;
  // True if this rank reported all events of the call, or reports later calls already.
  bool HasTold(const DecidedCall& call, size_t teller) const;
  // Fills in the times that are known.
  void PutTimes(const DecidedCall& call, GuardedCall& guarded) const;

  int tellers_;
  std::deque<DecidedCall> calls_;
  std::map<CallKey, Told> told_;
  // Number of the newest call that each rank reported.
  std::array<uint64_t, kMaxTellers> newest_{};
  // Calls below this number are over: reports about them come late.
  uint64_t taken_ = 0;
};

}  // namespace dynamiccl
