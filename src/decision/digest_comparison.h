// SPDX-License-Identifier: Apache-2.0
// Whether the ranks of a communicator have decided alike: compares what they say of equal call numbers, on
// the leader. Pure state, without sockets and clocks; time is passed in.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/decision/decision_digest.h"

namespace dynamiccl {

// Where two ranks differ about a call number, the others have so long to say on which side they are: ranks
// look once a second.
inline constexpr int64_t kDigestPatienceNs = 3'000'000'000;

// Some calls from `from` on and before `until` were decided differently.
struct Divergence {
  uint64_t from = 0;
  uint64_t until = 0;
  std::vector<int> ranks;  // that differ from most; where there is no most, all that were heard: some of them
  size_t n_ranks = 0;      // how many these are
  bool from_most = false;

  friend bool operator==(const Divergence&, const Divergence&) = default;
};

// "rank 2 decided otherwise than most ranks in calls 256 to 511". `names`: what ranks are called, by rank.
std::string Describe(const Divergence& divergence, const std::vector<int>& names);

class DigestComparison {
 public:
  explicit DigestComparison(int n_ranks) : n_ranks_(static_cast<size_t>(n_ranks)) {}

  // A rank says each checkpoint once; what it says again counts for nothing.
  void Take(int rank, const DigestCheckpoint& checkpoint, int64_t now_ns);
  // Empty as long as none is known.
  std::optional<Divergence> Judge(int64_t now_ns);

 private:
  // Ranks that said the same.
  struct Alike {
    size_t n_ranks = 0;
    std::vector<int> first;  // the first of them
  };
  struct Spoken {
    std::vector<bool> heard;  // by rank
    size_t n_heard = 0;
    std::map<uint64_t, Alike> said;  // by digest
    int64_t differ_ns = 0;           // since when
  };

  void DropLeastRound();
  Divergence Between(uint64_t until, const Spoken& spoken) const;

  const size_t n_ranks_;
  uint64_t agreed_until_ = 0;  // all ranks have said the same of it
  std::map<uint64_t, Spoken> open_;
};

}  // namespace dynamiccl
