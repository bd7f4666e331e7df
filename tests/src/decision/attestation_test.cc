// SPDX-License-Identifier: Apache-2.0
#include "src/decision/attestation.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <vector>

namespace dynamiccl {
namespace {

using ::testing::HasSubstr;

AttestedValues Equal() {
  AttestedValues values;
  values.build = "0.1.0 abc";
  values.mode = "frozen";
  values.rules = "12ab";
  return values;
}

TEST(Attestation, AgreesOnceAllPledgedEqualValues) {
  Attestation attestation(3);
  for (const int rank : {2, 0}) {
    attestation.Pledge(rank, 3, Equal());
    EXPECT_FALSE(attestation.verdict());
  }
  attestation.Pledge(1, 3, Equal());
  ASSERT_TRUE(attestation.verdict());
  EXPECT_TRUE(attestation.verdict()->agreed);
}

TEST(Attestation, EachValueThatDiffersIsNamedWithItsRanks) {
  std::string AttestedValues::*const kMembers[] = {
#define DYNAMICCL_TEST_MEMBER(name, sentence) &AttestedValues::name,
      DYNAMICCL_ATTESTED_VALUES(DYNAMICCL_TEST_MEMBER)
#undef DYNAMICCL_TEST_MEMBER
  };
  for (const auto member : kMembers) {
    Attestation attestation(3);
    AttestedValues other = Equal();
    other.*member = "else";
    attestation.Pledge(0, 3, Equal());
    attestation.Pledge(2, 3, other);
    ASSERT_TRUE(attestation.verdict());
    EXPECT_FALSE(attestation.verdict()->agreed);
    EXPECT_FALSE(attestation.verdict()->timed_out);
    EXPECT_THAT(attestation.verdict()->reason, HasSubstr("else on rank 2"));
  }
}

TEST(Attestation, MissingRankMeansNoAndIsNamed) {
  Attestation attestation(4, true);
  for (const int rank : {0, 1, 3}) attestation.Pledge(rank, 4, Equal());
  attestation.Expire();
  ASSERT_TRUE(attestation.verdict());
  EXPECT_TRUE(attestation.verdict()->timed_out);
  EXPECT_EQ(attestation.verdict()->reason, "3 of 4 ranks pledged in time; missing 2");
}

TEST(Attestation, VerdictNeverChanges) {
  Attestation late(2);
  late.Pledge(0, 2, Equal());
  late.Expire();
  const Verdict no = *late.verdict();
  late.Pledge(1, 2, Equal());
  EXPECT_EQ(*late.verdict(), no);

  Attestation agreed(2);
  agreed.Pledge(0, 2, Equal());
  agreed.Pledge(1, 2, Equal());
  agreed.Expire();
  agreed.Decline(0, "changed its mind");
  agreed.Pledge(1, 2, AttestedValues{});
  EXPECT_TRUE(agreed.verdict()->agreed);
}

TEST(Attestation, OneRankThatPledgesTwiceDoesNotStandForAnother) {
  Attestation attestation(2, true);
  attestation.Pledge(0, 2, Equal());
  attestation.Pledge(0, 2, Equal());
  EXPECT_FALSE(attestation.verdict());
  attestation.Expire();
  EXPECT_EQ(attestation.verdict()->reason, "1 of 2 ranks pledged in time; missing 1");
}

TEST(Attestation, RankThatAsksAgainByItsPledgeIsStillOneOfThem) {
  Attestation attestation(2);
  for (const int rank : {0, 0, 1, 0}) attestation.Pledge(rank, 2, Equal());
  EXPECT_TRUE(attestation.verdict()->agreed);
}

TEST(Attestation, RankThatPledgesTwoThingsMeansNo) {
  Attestation attestation(2);
  attestation.Pledge(1, 2, Equal());
  attestation.Pledge(1, 2, AttestedValues{});
  EXPECT_THAT(attestation.verdict()->reason, HasSubstr("on rank 1, none on rank 1"));
}

TEST(Attestation, RankThatDeclinesMeansNo) {
  Attestation declined(2);
  declined.Decline(1, "it runs in mode off");
  EXPECT_EQ(declined.verdict()->reason, "rank 1 takes no part: it runs in mode off");
}

TEST(Attestation, WithoutTheLeaderAmongTheRanksThereIsNoYesWhereItIsNeeded) {
  for (const bool takes_part : {false, true}) {
    Attestation attestation(2, true);
    attestation.Pledge(1, 2, Equal());
    if (takes_part) attestation.LeaderTakesPart();
    attestation.Pledge(0, 2, Equal());
    EXPECT_EQ(attestation.verdict()->agreed, takes_part) << attestation.verdict()->reason;
  }
}

TEST(Attestation, AnotherSizeMeansNo) {
  Attestation attestation(2);
  attestation.Pledge(0, 2, Equal());
  attestation.Pledge(1, 3, Equal());
  EXPECT_THAT(attestation.verdict()->reason, HasSubstr("3 ranks"));
}

TEST(Attestation, ManyMissingRanksAreCounted) {
  Attestation attestation(100, true);
  attestation.Pledge(0, 100, Equal());
  attestation.Expire();
  EXPECT_THAT(attestation.verdict()->reason, HasSubstr("missing 1 2 3 4 5 6 7 8 and 91 more"));
}

// Members of a child communicator have the numbers of their parent, because only the members know who they
// are.
TEST(Attestation, OfAChildTheRanksThatCameAreNamed) {
  Attestation child(3);
  for (const int member : {4, 0}) child.Pledge(member, 3, Equal());
  child.Expire();
  EXPECT_EQ(child.verdict()->reason,
            "2 of 3 ranks pledged in time; present 0 4 (in a split communicator, by the parent's ranks)");
  Attestation nobody(3);
  nobody.Expire();
  EXPECT_THAT(nobody.verdict()->reason, HasSubstr("0 of 3 ranks pledged in time; present none"));
}

// In any order of events the verdict is yes exactly if all ranks pledged equal values before any other event.
TEST(Attestation, RandomEventsNeverGiveAYesWithoutAllEqualPledges) {
  std::mt19937 random(11);
  for (int round = 0; round < 20000; ++round) {
    const int n_ranks = 1 + static_cast<int>(random() % 4);
    Attestation attestation(n_ranks);
    std::vector<bool> pledged(static_cast<size_t>(n_ranks));
    bool spoiled = false;
    for (int event = 0; event < 8 && !attestation.verdict(); ++event) {
      const int rank = static_cast<int>(random() % static_cast<unsigned>(n_ranks));
      const size_t index = static_cast<size_t>(rank);
      switch (random() % 8) {
        case 0:
          attestation.Expire();
          spoiled = true;
          break;
        case 1:
          attestation.Pledge(rank, n_ranks, AttestedValues{.rules = std::to_string(event)});
          spoiled = true;
          break;
        case 2:
          attestation.Decline(rank, "no");
          spoiled = true;
          break;
        case 3:
          attestation.Pledge(rank, n_ranks + 1, Equal());
          spoiled = true;
          break;
        default:
          pledged[index] = true;
          attestation.Pledge(rank, n_ranks, Equal());
      }
    }
    // The only pledge of a single rank gives a yes, whatever it contains.
    if (n_ranks == 1 && attestation.verdict() && attestation.verdict()->agreed) continue;
    const bool all = std::all_of(pledged.begin(), pledged.end(), [](bool p) { return p; });
    const bool agreed = attestation.verdict() && attestation.verdict()->agreed;
    ASSERT_EQ(agreed, all && !spoiled) << "round " << round;
  }
}

}  // namespace
}  // namespace dynamiccl
