// SPDX-License-Identifier: Apache-2.0
#include "src/decision/voting_member.h"

#include <gtest/gtest.h>

namespace dynamiccl {
namespace {

const Verdict kYes{.agreed = true};
const Verdict kNo{false, false, "policy"};

TEST(VotingMember, GoesAloneOnlyAsLongAsItHasNotPledged) {
  VotingMember unreached;
  EXPECT_TRUE(unreached.FallBackToNccl("nobody there"));
  EXPECT_TRUE(unreached.decision()->timed_out);
  EXPECT_FALSE(unreached.decision()->agreed);
  EXPECT_FALSE(unreached.Pledge());

  VotingMember pledged;
  EXPECT_TRUE(pledged.Pledge());
  EXPECT_FALSE(pledged.FallBackToNccl("nobody there"));
  EXPECT_FALSE(pledged.decision());
}

TEST(VotingMember, SendsItsPledgeAgainUntilItHasTheVerdict) {
  VotingMember member;
  for (int again = 0; again < 3; ++again) EXPECT_TRUE(member.Pledge());
  member.ApplyVerdict(kYes);
  EXPECT_FALSE(member.Pledge());
  EXPECT_TRUE(member.decision()->agreed);
}

TEST(VotingMember, ItsDecisionNeverChanges) {
  VotingMember member;
  (void)member.Pledge();
  member.ApplyVerdict(kNo);
  member.ApplyVerdict(kYes);
  member.Release();
  EXPECT_FALSE(member.FallBackToNccl(""));
  EXPECT_EQ(*member.decision(), kNo);
}

TEST(VotingMember, EndOfTheCommunicatorFreesItAndMeansNcclsChoice) {
  VotingMember member;
  (void)member.Pledge();
  member.Release();
  EXPECT_FALSE(member.decision()->agreed);
}

}  // namespace
}  // namespace dynamiccl
