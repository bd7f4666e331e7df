// SPDX-License-Identifier: Apache-2.0
// Joins the calls that the leader's own rank decided, in their order, with the times that ranks report for
// them. The result is what the guard reads.
//
// A rank that arrives early waits inside the kernel for the others. So the shortest of the ranks' times is
// the transfer, and the longest minus the shortest is the arrival skew. No common clock is needed.
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

// At most this many ranks report times: more would change the shortest time little.
inline constexpr int kMaxReporters = 16;
// Returns how many ranks of a communicator of `n_ranks` report times.
int ReportersOf(int n_ranks);
// Returns the number of a rank among those that report times, from 0; -1 if it does not report.
int ReporterOf(int rank, int n_ranks);

// One rank's time of one collective of a call, or the stamp of a call, in nanoseconds.
struct CallTime {
  uint64_t call_number = 0;
  Collective collective = Collective::kAllReduce;
  int64_t ns = 0;         // 0: this is a stamp
  int64_t begun_ns = -1;  // of a stamp: when the leader's device reached the call, by the device's clock

  friend bool operator==(const CallTime&, const CallTime&) = default;
};

// The join for one communicator, owned by its leader's table guard (plugin/runtime); control thread only.
// Calls come out in the order in which they were added. If reports are lost, a call waits at most 5 s for its
// times and 60 s for its stamp, and then comes out without them. Memory is limited: only the newest 4096
// times without a call are kept, and no call waits for a stamp while more than 4096 calls wait.
class TimedCalls {
 public:
  // `reporters`: number of ranks that report times, from ReportersOf.
  explicit TimedCalls(int reporters) : reporters_(reporters) {}

  // Adds a decided call. Calls must come in their order. A repeated key within one call counts once. Two keys
  // of the same collective in one call make both untimed, because their times cannot be told apart.
  void Add(const DecidedCall& call);
  // Adds the report of one rank, nearly in the order of calls, before or after the leader's own decision.
  // Times from unknown ranks and about finished calls are ignored. Stamps count whatever rank they come from,
  // because only the one in the leader's process sends any.
  void AddTimes(int reporter, std::span<const CallTime> times);
  // Returns the oldest call once its times are known or no longer expected; else nothing. `now_ns` is the
  // clock of DecidedCall::issued_ns.
  std::optional<GuardedCall> Next(int64_t now_ns);
  // Number of calls that wait for times.
  size_t waiting() const { return calls_.size(); }

 private:
  using CallKey = std::pair<uint64_t, Collective>;
  // The reports about one collective of a call, by the rank's number among the reporters.
  struct Reports {
    // Nanoseconds of the longest of the collective's events; 0: not reported yet. The collectives of a batch
    // share a kernel, so their times are not added.
    std::array<int64_t, kMaxReporters> ns{};
    // Number of events reported.
    std::array<uint16_t, kMaxReporters> events{};
  };

  // True if the call need not wait for further times or for its stamp.
  bool Complete(const DecidedCall& call, int64_t now_ns) const;
  // True if this rank has reported all events of the call, or a much later call.
  bool HasReported(const DecidedCall& call, size_t reporter) const;
  void TakeStamp(const CallTime& stamp);
  // Fills in the times that are known.
  void PutTimes(const DecidedCall& call, GuardedCall& guarded) const;

  int reporters_;
  std::deque<DecidedCall> calls_;
  std::map<CallKey, Reports> reports_;
  // Number of the newest call about which each reporter has reported.
  std::array<uint64_t, kMaxReporters> newest_{};
  std::map<uint64_t, int64_t> stamps_;  // CallTime::begun_ns by call number
  uint64_t newest_stamp_ = 0;           // number of the newest call with a stamp
  // Calls with a smaller number have left the queue; reports about them are ignored.
  uint64_t taken_ = 0;
};

}  // namespace dynamiccl
