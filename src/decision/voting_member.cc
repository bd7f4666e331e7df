// SPDX-License-Identifier: Apache-2.0
// Rules that make a vote safe (docs/agreement.md says what ranks vote on):
//  1. A rank that has sent its pledge, or may have sent it, decides by the leader's verdict alone and never
//     by its own time-out. One exception: in a vote before NCCL's init, a rank stops waiting for a leader
//     whose process cannot be reached any more. This is safe because NCCL's init needs that process too and
//     fails.
//  2. A rank that took NCCL's choice without a verdict never pledges in this vote. So the vote ends with no,
//     because the leader says yes only with the pledges of all ranks.
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
