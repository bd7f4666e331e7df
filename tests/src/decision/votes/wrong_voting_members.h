// SPDX-License-Identifier: Apache-2.0
// Members, and a memory of the leader, each of which breaks one rule of a vote. They work in a run without
// faults. The simulation must find that their ranks diverge or wait for ever.
#pragma once

#include <string>

#include "src/decision/voting_member.h"

namespace dynamiccl::testing {

// Treats the end of its own time as a no, whether or not it has pledged.
class TakesSilenceForANo : public VotingMember {
 public:
  bool FallBackToNccl(const std::string& why) {
    if (decision()) return false;
    ApplyVerdict({false, true, why});
    return true;
  }
};

// Treats the end of the leader's process as a no.
class TakesTheLeadersEndForANo : public VotingMember {
 public:
  void LeaderEnded() { ApplyVerdict({false, true, "the leader has ended"}); }
};

// Continues alone, and nevertheless sends its pledge when it can reach the leader again.
class PledgesAfterItWentAlone : public VotingMember {
 public:
  bool Pledge() {
    (void)VotingMember::Pledge();
    return true;
  }
  void PledgesWhenItHasDecided() const {}
};

// Sends its pledge once, even if the pledge is lost.
class SendsItsPledgeOnce : public VotingMember {
 public:
  bool Pledge() { return !pledged() && VotingMember::Pledge(); }
};

// States whether a leader forgets the verdict of a vote after it has told all ranks that asked.
struct RemembersVerdicts {
  static constexpr bool kForgetsTold = false;
};
struct ForgetsVerdicts {
  static constexpr bool kForgetsTold = true;
};

}  // namespace dynamiccl::testing
