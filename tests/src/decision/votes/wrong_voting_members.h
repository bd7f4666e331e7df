// SPDX-License-Identifier: Apache-2.0
// Members and a leader's memory that break one rule of a vote each. They look sound in a quiet run; the
// harness must find their divergence or their endless wait.
#pragma once

#include <string>

#include "src/decision/voting_member.h"

namespace dynamiccl::testing {

// Takes the end of its own time for a no, whether or not it has pledged.
class TakesSilenceForANo : public VotingMember {
 public:
  bool FallBackToNccl(const std::string& why) {
    if (decision()) return false;
    ApplyVerdict({false, true, why});
    return true;
  }
};

// Takes the end of the leader's process for a no.
class TakesTheLeadersEndForANo : public VotingMember {
 public:
  void LeaderEnded() { ApplyVerdict({false, true, "the leader has ended"}); }
};

// Goes alone, and says its pledge all the same when the leader can be reached again.
class PledgesAfterItWentAlone : public VotingMember {
 public:
  bool Pledge() {
    (void)VotingMember::Pledge();
    return true;
  }
  void PledgesWhenItHasDecided() const {}
};

// Says its pledge once: what is lost is lost.
class SaysItsPledgeOnce : public VotingMember {
 public:
  bool Pledge() { return !pledged() && VotingMember::Pledge(); }
};

// What a leader keeps of a vote whose verdict it has told to all who asked.
struct RemembersVerdicts {
  static constexpr bool kForgetsTold = false;
};
struct ForgetsVerdicts {
  static constexpr bool kForgetsTold = true;
};

}  // namespace dynamiccl::testing
