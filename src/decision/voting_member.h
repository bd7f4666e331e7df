// SPDX-License-Identifier: Apache-2.0
// One rank's side of a vote: the rank pledges, and keeps to the verdict. Attestation is the leader's side.
// Protocol and proof obligations: docs/agreement.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "src/decision/attestation.h"

namespace dynamiccl {

// The leader gives its verdict within its time-out. If a rank has no verdict this many nanoseconds later, the
// pledge or the verdict was lost: a network needs less than a second.
inline constexpr int64_t kAnswerNs = 1'000'000'000;

// One rank's state in one vote, owned by its pledge sender (plugin/runtime), one thread at a time. Pure
// state, without sockets, clocks and threads. It guarantees that a rank which may have pledged follows the
// leader's verdict, and that a rank which went on alone never pledges.
class VotingMember {
 public:
  // Call this before each sending of the pledge, before its first byte leaves. False: the pledge must not be
  // sent, because this rank has already decided. The first true binds the rank, whether or not the bytes
  // arrive.
  bool Pledge();
  // Takes the leader's verdict. Verdicts of one vote are all the same.
  void ApplyVerdict(const Verdict& verdict);
  // Reports that the leader could not be reached in time. A rank that has not pledged then decides for NCCL's
  // choice, which makes a yes impossible, and this returns true. A rank that has pledged decides nothing, and
  // this returns false.
  bool FallBackToNccl(const std::string& why);
  // Ends the vote because no call will use a verdict: the communicator is aborted, or it cannot be made
  // because its leader cannot be reached.
  void Release(const std::string& why = "the communicator is gone");

  // True once the rank is bound to follow the leader's verdict.
  bool pledged() const { return pledged_; }
  // The rank's decision; empty until there is one. It never changes afterwards.
  const std::optional<Verdict>& decision() const { return decision_; }

 private:
  bool pledged_ = false;
  std::optional<Verdict> decision_;
};

}  // namespace dynamiccl
