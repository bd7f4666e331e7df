// SPDX-License-Identifier: Apache-2.0
// Compares, on the leader, what the ranks of a communicator report as digests of their decisions
// (decision_digest.h). Equal digests at a call number mean that all decisions before it were equal. Two
// different digests at one call number mean that ranks decided differently, and NCCL would hang or give wrong
// results.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/decision/decision_digest.h"

namespace dynamiccl {

// When two ranks differ at a call number, the other ranks have this many nanoseconds to report theirs. Ranks
// report once a second, so 3 s give each of them two more reports.
inline constexpr int64_t kDigestPatienceNs = 3'000'000'000;

// Some ranks decided some calls differently, from call `from` up to but not including call `until`.
struct Divergence {
  uint64_t from = 0;
  uint64_t until = 0;
  // Up to eight ranks that differ from the majority; if no digest has a majority, up to eight of all ranks
  // that reported.
  std::vector<int> ranks;
  size_t n_ranks = 0;      // number of such ranks, the unnamed ones included
  bool from_most = false;  // a majority of the reporting ranks agrees

  friend bool operator==(const Divergence&, const Divergence&) = default;
};

// Returns for example "rank 2 decided otherwise than most ranks in calls 256 to 511". `names` holds, by rank,
// the number by which messages call the rank.
std::string Describe(const Divergence& divergence, const std::vector<int>& names);

// The comparison for one communicator, owned by its leader's SwitchLeadership (plugin/runtime); control
// thread only. It is pure state, without sockets and clocks; time is an argument. It keeps at most 64 call
// numbers that not all ranks have reported.
class DigestComparison {
 public:
  explicit DigestComparison(int n_ranks) : n_ranks_(static_cast<size_t>(n_ranks)) {}

  // Adds a rank's report. A second report of the same checkpoint is ignored.
  void AddReport(int rank, const DigestCheckpoint& checkpoint, int64_t now_ns);
  // Returns a difference once all ranks have reported or kDigestPatienceNs have passed since the difference
  // appeared.
  std::optional<Divergence> FindDivergence(int64_t now_ns);

 private:
  // Ranks that reported the same digest.
  struct MatchingRanks {
    size_t n_ranks = 0;
    std::vector<int> first;  // up to eight of them, for messages
  };
  // The digests that ranks have reported about one call number.
  struct ReportedDigests {
    std::vector<bool> reported;  // by rank: true once it has reported
    size_t n_reported = 0;
    std::map<uint64_t, MatchingRanks> by_digest;
    int64_t differ_ns = 0;  // when the second digest arrived
  };

  // Drops the open call number that the fewest ranks will report. A rank reports the last multiple of each
  // power of two (kKeptCheckpoints), so the multiples of large powers are the ones that all ranks report. The
  // number whose greatest power-of-two divisor is the smallest is dropped.
  void DropRarestReport();
  // Describes the difference at call number `until`.
  Divergence Between(uint64_t until, const ReportedDigests& reports) const;

  const size_t n_ranks_;
  // The last call number for which all ranks have reported the same digest.
  uint64_t agreed_until_ = 0;
  // Reports that are still compared, by call number; all numbers are above agreed_until_.
  std::map<uint64_t, ReportedDigests> open_;
};

}  // namespace dynamiccl
