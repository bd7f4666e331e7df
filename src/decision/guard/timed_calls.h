// SPDX-License-Identifier: Apache-2.0
// From what a leader hears to what a guard reads: the calls that its own rank decided, in their order, joined
// with the times that ranks tell of them. A rank that comes early waits inside the kernel for the others, so
// the transfer took what it took on the rank that waited least, and the longest less the shortest time is how
// far apart the ranks arrived: no common clock is needed.
// One thread.
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

// Ranks that tell times: more would add little to the least of them.
inline constexpr int kMaxTellers = 16;
// How many ranks of a communicator tell times, and which of them a rank is; -1: none.
int TellersOf(int n_ranks);
int TellerOf(int rank, int n_ranks);

// One rank's time of one collective of a call.
struct CallTime {
  uint64_t call_number = 0;
  Collective collective = Collective::kAllReduce;
  int64_t ns = 0;

  friend bool operator==(const CallTime&, const CallTime&) = default;
};

class TimedCalls {
 public:
  explicit TimedCalls(int tellers) : tellers_(tellers) {}

  // In the order of calls. To be asked about a call twice is to be asked once.
  void Add(const DecidedCall& call);
  // What one rank tells, nearly in the order of calls: before or after the leader's own decision of it.
  void TakeTimes(int teller, std::span<const CallTime> times);
  // The next call whose times are known, or will not come any more.
  std::optional<GuardedCall> Next(int64_t now_ns);
  // Calls that wait for times.
  size_t waiting() const { return calls_.size(); }

 private:
  using CallKey = std::pair<uint64_t, Collective>;
  struct Told {
    std::array<int64_t, kMaxTellers> ns{};       // the longest of a batch's collectives: they share a kernel
    std::array<uint16_t, kMaxTellers> events{};  // how many were told
  };

  bool Complete(const DecidedCall& call, int64_t now_ns) const;
  bool HasTold(const DecidedCall& call, size_t teller) const;
  void PutTimes(const DecidedCall& call, GuardedCall& guarded) const;

  int tellers_;
  std::deque<DecidedCall> calls_;
  std::map<CallKey, Told> told_;
  std::array<uint64_t, kMaxTellers> newest_{};  // call that a rank told of
  uint64_t taken_ = 0;                          // calls below are over: what is told of them is late
};

}  // namespace dynamiccl
