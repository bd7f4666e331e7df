// SPDX-License-Identifier: Apache-2.0
// Rules that make a vote safe:
//  1. A rank that may have pledged decides by the leader's verdict alone and never by its own time-out. The
//     only exception is a vote before an init whose leader's process cannot be reached any more. NCCL's
//     init cannot reach that process either.
//  2. A rank that went on alone never pledges in this vote. The leader says yes only with the pledges of
//     all ranks.
#include "src/decision/voting_member.h"

namespace dynamiccl {

bool VotingMember::Pledge() {
  if (decision_) return false;
  pledged_ = true;
  return true;
}

void VotingMember::ApplyVerdict(const Verdict& verdict) {
  if (!decision_) decision_ = verdict;
}

bool VotingMember::FallBackToNccl(const std::string& why) {
  if (pledged_ || decision_) return false;
  decision_ = Verdict{false, true, why};
  return true;
}

void VotingMember::Release(const std::string& why) {
  if (!decision_) decision_ = Verdict{false, true, why};
}

}  // namespace dynamiccl
