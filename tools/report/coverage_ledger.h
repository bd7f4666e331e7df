// SPDX-License-Identifier: Apache-2.0
// Sums up how much of a job's communication a tuner could change, and what decides the rest. A policy cannot
// gain more than the tunable part, so this is the first thing to know about a job.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/collective/coverage.h"
#include "tools/report/exposed_shares.h"
#include "tools/report/json_output.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {

// Sums over the calls that are decided in one way.
struct CoveredCalls {
  int64_t calls = 0;
  // Sum of the sizes as NCCL counts them over all ranks (docs/glossary.md, bytes).
  uint64_t bytes = 0;
  // Sum of the times in nanoseconds. The time of an untimed call is estimated from timed calls.
  double ns = 0;
};

// Of the communication time that a tuner could change, the part that is exposed: the program waits for these
// calls.
struct ExposedTime {
  // Time of the calls for which a guard measured the exposed share.
  double known_ns = 0;
  // The exposed part of known_ns.
  double waited_ns = 0;
  // The part of known_ns in latency-critical calls: gathers of parameters for which the program waits.
  double critical_ns = 0;
};

// Sums over a job's calls by what decides them: tunable, pinned by the user, point-to-point and so on (the
// enum Coverage has all). `total` is always the sum of `of`.
struct CoverageLedger {
  std::array<CoveredCalls, kCoverages> of{};
  CoveredCalls total;
  ExposedTime exposed;
  // Number of calls whose time is known: measured, or estimated from a timed call of the same kind.
  int64_t estimated_calls = 0;
};

// A kind of calls that are expected to take equally long: one communicator, collective and size.
struct TimedKind {
  uint32_t communicator = 0;
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;
  friend auto operator<=>(const TimedKind&, const TimedKind&) = default;
};

// The mean time of the timed calls of each kind.
class KindTimes {
 public:
  // `duration_ns` is negative if the call was not timed.
  void Take(const TimedKind& kind, int64_t duration_ns);
  // Returns the mean time in nanoseconds, or -1 if no call of the kind was timed.
  double MeanNs(const TimedKind& kind) const;

 private:
  struct TotalTime {
    double ns = 0;
    int64_t calls = 0;
  };
  std::map<TimedKind, TotalTime> timed_;
};

// Builds the ledger of one process from its calls in order of issue. `kinds` holds the times of all these
// calls and, like `shares`, must outlive this object.
class LedgerBuilder {
 public:
  LedgerBuilder(const KindTimes& kinds, const ExposedShares& shares) : kinds_(kinds), shares_(shares) {}
  void Take(const TraceCall& call);
  const CoverageLedger& ledger() const { return ledger_; }

 private:
  const KindTimes& kinds_;
  const ExposedShares& shares_;
  CoverageLedger ledger_;
};

// Returns the ledger of one process. A call that was not timed gets the mean time of the timed calls with the
// same communicator, collective and bytes. If there are none, its time is left out. A key that was recognised
// in several roles gets the mean of the exposed shares of these roles.
CoverageLedger LedgerOf(const SectionCalls& section);

// Describes the ledger in one line such as "tunable 96.0 % of the communication time; pinned 3.0 %,
// point_to_point 1.0 %", largest share first. If some calls have no time, the shares are of bytes, and the
// line says so. If the exposed share is known, "; the program waits for 40 % of the tunable time" follows.
// Empty without calls.
std::string Describe(const CoverageLedger& ledger);
// The ledger's calls, bytes and seconds as JSON; a coverage without calls is left out.
Json ToJson(const CoverageLedger& ledger);

}  // namespace dynamiccl
