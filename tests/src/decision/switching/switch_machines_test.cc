// SPDX-License-Identifier: Apache-2.0
// Tests the rules of leader and member one at a time, with orders of events that each test states.
#include <gtest/gtest.h>

#include "src/decision/switching/switch_leader.h"
#include "src/decision/switching/switch_member.h"

namespace dynamiccl {
namespace {

constexpr int64_t kMs = 1'000'000;

SwitchMessage Prepare(uint64_t attempt, uint64_t boundary, uint32_t version) {
  SwitchMessage message;
  message.kind = SwitchKind::kPrepare;
  message.attempt = attempt;
  message.boundary = boundary;
  message.version = version;
  return message;
}

SwitchMessage Answered(SwitchKind kind, uint64_t attempt, uint64_t calls, Refusal why = Refusal::kPassed) {
  SwitchMessage message;
  message.kind = kind;
  message.attempt = attempt;
  message.calls = calls;
  message.refusal = why;
  return message;
}

// Returns the single message of `sends`.
SwitchMessage Only(const SwitchSends& sends) {
  EXPECT_EQ(sends.sends().size(), 1u);
  return sends.empty() ? SwitchMessage{} : sends.begin()->message;
}

class Member : public ::testing::Test {
 protected:
  bool Pass(uint64_t call) {
    gate_.Begin(call);
    return gate_.TryPass(call);
  }
  SwitchMessage PreparedFor(uint64_t attempt, uint64_t boundary, uint32_t version, bool usable = true) {
    member_.Prepare(Prepare(attempt, boundary, version), usable);
    return Only(member_.Answer());
  }

  CallGate gate_;
  SwitchMember member_{gate_};
};

TEST_F(Member, PledgesWaitsAtTheBoundaryAndSwitches) {
  EXPECT_EQ(PreparedFor(1, 2, 5).kind, SwitchKind::kPledge);
  EXPECT_TRUE(Pass(0));
  EXPECT_TRUE(Pass(1));
  EXPECT_FALSE(Pass(2));
  member_.ApplyVerdict(1, true);
  EXPECT_TRUE(gate_.TryPass(2));
  EXPECT_EQ(gate_.version(), 5u);
}

TEST_F(Member, RefusesOncePassedAndGoesOn) {
  EXPECT_TRUE(Pass(0));
  member_.Prepare(Prepare(1, 1, 5), true);
  EXPECT_FALSE(Pass(1));  // The gate is armed, and the member has not yet answered.
  const SwitchMessage answer = Only(member_.Answer());
  EXPECT_EQ(answer.kind, SwitchKind::kRefuse);
  EXPECT_EQ(answer.refusal, Refusal::kPassed);
  EXPECT_EQ(answer.calls, 2u);
  EXPECT_TRUE(gate_.TryPass(1));
  EXPECT_EQ(gate_.version(), kDefaultTableVersion);
}

TEST_F(Member, RefusesATableItDoesNotHaveAndKeepsRefusing) {
  EXPECT_EQ(PreparedFor(1, 8, 5, false).refusal, Refusal::kUnusableTable);
  EXPECT_EQ(PreparedFor(1, 8, 5, true).kind, SwitchKind::kRefuse);
  EXPECT_TRUE(gate_.idle());
}

TEST_F(Member, NoTimeOutDecides) {
  EXPECT_EQ(PreparedFor(1, 0, 5).kind, SwitchKind::kPledge);
  EXPECT_FALSE(Pass(0));
  for (int64_t now = kMs; now < 1'000'000 * kMs; now += 997 * kMs) {
    (void)member_.Tick(now);
    ASSERT_FALSE(gate_.TryPass(0));
  }
}

TEST_F(Member, RepeatsItsPledgeAndAsksItsPeersWhileItWaits) {
  PreparedFor(1, 0, 5);
  EXPECT_FALSE(Pass(0));
  EXPECT_TRUE(member_.Tick(kMs).empty());
  EXPECT_EQ(Only(member_.Tick(11 * kMs)).kind, SwitchKind::kAsk);
  EXPECT_TRUE(member_.Tick(12 * kMs).empty());
  EXPECT_EQ(Only(member_.Tick(52 * kMs)).kind, SwitchKind::kPledge);
  member_.ApplyVerdict(1, false);
  EXPECT_TRUE(member_.Tick(500 * kMs).empty());
  EXPECT_TRUE(gate_.TryPass(0));
}

TEST_F(Member, WhatItCalledOffTowardsAPeerItNeverPledges) {
  const SwitchMessage told = Only(member_.AnswerPeer(2, 4));
  EXPECT_EQ(told.kind, SwitchKind::kVerdict);
  EXPECT_FALSE(told.commit);
  EXPECT_EQ(PreparedFor(4, 100, 5).kind, SwitchKind::kRefuse);
  EXPECT_EQ(PreparedFor(5, 100, 5).kind, SwitchKind::kPledge);
}

TEST_F(Member, TellsPeersWhatItKnowsAndNothingWhileItIsPledged) {
  PreparedFor(3, 10, 5);
  EXPECT_TRUE(member_.AnswerPeer(2, 3).empty());
  EXPECT_FALSE(Only(member_.AnswerPeer(2, 2)).commit);
  member_.ApplyVerdict(3, true);
  EXPECT_TRUE(Only(member_.AnswerPeer(2, 3)).commit);
  EXPECT_TRUE(member_.AnswerPeer(2, 2).empty());  // No peer can be waiting for this verdict.
}

TEST_F(Member, AsksForTheVerdictOfTheAttemptItIsPledgedTo) {
  PreparedFor(1, 100, 5);
  const SwitchMessage answer = PreparedFor(2, 200, 5);
  EXPECT_EQ(answer.kind, SwitchKind::kPledge);
  EXPECT_EQ(answer.attempt, 1u);
  member_.ApplyVerdict(2, false);  // This is not the attempt it waits for.
  EXPECT_FALSE(gate_.idle());
}

TEST_F(Member, TakesNoAttemptBeforeTheBoundaryOfTheLastCommit) {
  PreparedFor(1, 2, 5);
  member_.ApplyVerdict(1, true);
  member_.Prepare(Prepare(2, 9, 6), true);
  EXPECT_TRUE(member_.Answer().empty());
  for (uint64_t call = 0; call < 3; ++call) EXPECT_TRUE(Pass(call));
  EXPECT_EQ(PreparedFor(2, 9, 6).kind, SwitchKind::kPledge);
}

class Leader : public ::testing::Test {
 protected:
  // Returns the kPrepare of the attempt that this Tick begins.
  SwitchMessage Begin(int64_t now_ns, uint64_t own_calls) {
    const SwitchMessage message = Only(leader_.Tick(now_ns, own_calls));
    EXPECT_EQ(message.kind, SwitchKind::kPrepare);
    return message;
  }
  SwitchSends Pledge(int rank, uint64_t attempt, uint64_t own_calls = 0) {
    return leader_.HandleAnswer(rank, Answered(SwitchKind::kPledge, attempt, own_calls), own_calls);
  }
  void CommitAll(uint64_t attempt, uint64_t own_calls) {
    for (int rank = 0; rank < 3; ++rank) (void)Pledge(rank, attempt, own_calls);
    EXPECT_EQ(leader_.TakeOutcome()->end, SwitchOutcome::End::kCommitted);
  }

  SwitchLeader leader_{3};
};

TEST_F(Leader, CommitsOnceAllPledged) {
  EXPECT_TRUE(leader_.Request({SwitchReason::kOperator, 1}));
  const SwitchMessage prepare = Begin(0, 100);
  EXPECT_EQ(prepare.boundary, 100 + kLeastSwitchDistance);
  EXPECT_TRUE(Pledge(2, 1).empty());
  EXPECT_TRUE(Pledge(2, 1).empty());  // A repeated pledge counts for one rank.
  EXPECT_TRUE(Pledge(0, 1).empty());
  EXPECT_TRUE(Only(Pledge(1, 1)).commit);
  EXPECT_FALSE(leader_.busy());
}

TEST_F(Leader, VerdictNeverChangesAndAnswersEveryLatePledge) {
  leader_.Request({SwitchReason::kOperator, 1});
  Begin(0, 0);
  EXPECT_FALSE(Only(leader_.HandleAnswer(1, Answered(SwitchKind::kRefuse, 1, 50), 0)).commit);
  for (int rank = 0; rank < 3; ++rank) EXPECT_FALSE(Only(Pledge(rank, 1)).commit);
  EXPECT_FALSE(Only(leader_.AnswerPeer(2, 1)).commit);
  EXPECT_EQ(leader_.TakeOutcome()->rank, 1);
}

TEST_F(Leader, DistanceGrowsWithWhatWasMeasuredAndWithFailures) {
  leader_.Request({SwitchReason::kOperator, 1});
  Begin(0, 0);
  // The other rank is 50 calls ahead, and a round trip took 3 calls.
  leader_.HandleAnswer(1, Answered(SwitchKind::kRefuse, 1, 53), 3);
  const SwitchMessage second = Begin(kMs, 10);
  EXPECT_EQ(second.boundary, 10 + 2 * (50 + 4 * 3));
}

TEST_F(Leader, CallsOffAnAttemptBeforeItsOwnRankWouldWait) {
  leader_.Request({SwitchReason::kOperator, 1});
  Begin(0, 0);
  const SwitchSends sends = leader_.Tick(kMs, 7);
  ASSERT_EQ(sends.sends().size(), 2u);
  EXPECT_EQ(sends.sends()[0].message.kind, SwitchKind::kVerdict);
  EXPECT_FALSE(sends.sends()[0].message.commit);
  EXPECT_EQ(sends.sends()[1].message.kind, SwitchKind::kPrepare);
  EXPECT_EQ(sends.sends()[1].message.attempt, 2u);
}

TEST_F(Leader, CallsOffAnAttemptThatARankDoesNotAnswer) {
  leader_.Request({SwitchReason::kOperator, 1});
  Begin(0, 0);
  Pledge(0, 1);
  EXPECT_EQ(Only(leader_.Tick(60 * kMs, 0)).kind, SwitchKind::kPrepare);
  EXPECT_FALSE(leader_.Tick(kSwitchAttemptNs, 0).begin()->message.commit);
  const auto outcome = leader_.TakeOutcome();
  EXPECT_EQ(outcome->end, SwitchOutcome::End::kRankSilent);
  EXPECT_EQ(outcome->rank, 1);
  EXPECT_FALSE(outcome->request_ended);
}

TEST_F(Leader, AdoptsAtMostOnceInFiveSecondsButRevokesAtOnce) {
  leader_.Request({SwitchReason::kAdoption, 1});
  Begin(kMs, 0);
  CommitAll(1, 0);
  EXPECT_TRUE(leader_.Request({SwitchReason::kAdoption, 2}));
  EXPECT_TRUE(leader_.Tick(kAdoptionSpacingNs, 1000).empty());
  EXPECT_TRUE(leader_.Request({SwitchReason::kRevocation, 3}));
  EXPECT_EQ(Begin(kAdoptionSpacingNs, 1000).version, 3u);
  CommitAll(2, 1000);
  leader_.Request({SwitchReason::kAdoption, 4});
  EXPECT_EQ(Begin(kAdoptionSpacingNs + kMs, 2000).version, 4u);
}

TEST_F(Leader, GivesAnAdoptionUpButNotAnOperatorsSwap) {
  leader_.Request({SwitchReason::kAdoption, 1});
  uint64_t calls = 0;
  for (int attempt = 1; attempt <= kMaxAdoptionAttempts; ++attempt) {
    const SwitchMessage prepare = Begin(attempt * kMs, calls);
    calls = prepare.boundary + 1;
    leader_.HandleAnswer(2, Answered(SwitchKind::kRefuse, prepare.attempt, calls), calls);
    EXPECT_EQ(leader_.TakeOutcome()->request_ended, attempt == kMaxAdoptionAttempts);
  }
  EXPECT_FALSE(leader_.busy());
  leader_.Request({SwitchReason::kOperator, 2});
  for (int attempt = 0; attempt < 3 * kMaxAdoptionAttempts; ++attempt) {
    const SwitchMessage prepare = Begin(attempt * kMs, calls);
    EXPECT_LE(prepare.boundary, calls + kMaxSwitchDistance);
    calls = prepare.boundary + 1;
    leader_.HandleAnswer(2, Answered(SwitchKind::kRefuse, prepare.attempt, calls), calls);
  }
  EXPECT_TRUE(leader_.busy());
}

TEST_F(Leader, DropsATableThatARankCannotUseAndNamesTheRank) {
  leader_.Request({SwitchReason::kOperator, 1});
  Begin(0, 0);
  leader_.HandleAnswer(2, Answered(SwitchKind::kRefuse, 1, 0, Refusal::kUnusableTable), 0);
  const auto outcome = leader_.TakeOutcome();
  EXPECT_EQ(outcome->end, SwitchOutcome::End::kRankCannot);
  EXPECT_EQ(outcome->rank, 2);
  EXPECT_TRUE(outcome->request_ended);
  EXPECT_FALSE(leader_.busy());
}

TEST_F(Leader, NewestRequestWinsAndNothingReplacesARevocation) {
  leader_.Request({SwitchReason::kOperator, 1});
  leader_.Request({SwitchReason::kOperator, 2});
  EXPECT_TRUE(leader_.Request({SwitchReason::kRevocation, 3}));
  EXPECT_FALSE(leader_.Request({SwitchReason::kOperator, 4}));
  EXPECT_EQ(Begin(0, 0).version, 3u);
}

TEST_F(Leader, RevocationCallsOffAnotherAttempt) {
  leader_.Request({SwitchReason::kOperator, 1});
  Begin(0, 0);
  leader_.Request({SwitchReason::kRevocation, 2});
  const SwitchSends sends = leader_.Tick(kMs, 0);
  ASSERT_EQ(sends.sends().size(), 2u);
  EXPECT_FALSE(sends.sends()[0].message.commit);
  EXPECT_EQ(sends.sends()[1].message.version, 2u);
}

TEST_F(Leader, RankThatIsBackTakesPartInTheNextAttempt) {
  leader_.Request({SwitchReason::kOperator, 1});
  Begin(0, 0);
  EXPECT_FALSE(Only(leader_.LoseRank(2)).commit);
  EXPECT_TRUE(leader_.LoseRank(1).empty());
  leader_.RegainRank(2);
  EXPECT_FALSE(leader_.Request({SwitchReason::kRevocation, 2})) << "rank 1 is still lost";
  leader_.RegainRank(1);
  leader_.RegainRank(1);
  EXPECT_TRUE(leader_.Request({SwitchReason::kRevocation, 2}));
  const SwitchMessage prepare = Begin(kMs, 0);
  EXPECT_EQ(prepare.version, 2u);
  for (int rank = 0; rank < 3; ++rank) {
    const SwitchSends sends =
        leader_.HandleAnswer(rank, Answered(SwitchKind::kPledge, prepare.attempt, 0), 0);
    EXPECT_EQ(sends.empty(), rank < 2);
  }
  EXPECT_EQ(leader_.TakeOutcome()->end, SwitchOutcome::End::kCommitted);
}

TEST_F(Leader, LostRankEndsSwitchingButNotACommit) {
  leader_.Request({SwitchReason::kOperator, 1});
  Begin(0, 0);
  EXPECT_FALSE(Only(leader_.LoseRank(2)).commit);
  EXPECT_FALSE(leader_.Request({SwitchReason::kRevocation, 2}));
  EXPECT_TRUE(leader_.Tick(kMs, 0).empty());

  SwitchLeader other(1);
  other.Request({SwitchReason::kOperator, 1});
  (void)other.Tick(0, 0);
  EXPECT_TRUE(Only(other.HandleAnswer(0, Answered(SwitchKind::kPledge, 1, 0), 0)).commit);
  EXPECT_TRUE(other.LoseRank(0).empty());
  EXPECT_TRUE(Only(other.AnswerPeer(0, 1)).commit);
}

}  // namespace
}  // namespace dynamiccl
