// SPDX-License-Identifier: Apache-2.0
// Runs all ranks as objects of one thread, with the shipped attestation as leader, so that a test states
// every order of events.
#include "src/decision/mask_agreement.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <tuple>
#include <vector>

#include "src/decision/attestation.h"

namespace dynamiccl {
namespace {

using ::testing::HasSubstr;

const ConfigMask kRingSimple = ConfigMask().set(ConfigIndex(Algorithm::kRing, Protocol::kSimple));
const ConfigMask kAll = NcclConfigs(Collective::kAllReduce);
constexpr CallSituation kGradients{Collective::kAllReduce, SizeClass{40}, 9};

// Collects the pledges of one vote and sends all ranks the verdict, as the leader does.
class Leader {
 public:
  explicit Leader(int n_ranks) : n_ranks_(n_ranks) {}

  std::shared_ptr<PendingVerdict> Pledge(int rank, const MaskPledge& pledge) {
    auto [found, created] =
        votes_.try_emplace(std::tuple(pledge.situation.collective, pledge.situation.size_class.index,
                                      pledge.situation.operands, pledge.attempt),
                           n_ranks_);
    AttestedValues values;
    values.place = std::to_string(pledge.call_number);
    values.mask = Describe(pledge.mask);
    found->second.attestation.Pledge(rank, n_ranks_, values);
    auto verdict = std::make_shared<PendingVerdict>();
    found->second.waiting.push_back(verdict);
    Tell(found->second);
    return verdict;
  }

  // Ends the vote's time. A rank that is missing now is late.
  void TimePasses() {
    for (auto& [key, vote] : votes_) {
      vote.attestation.Expire();
      Tell(vote);
    }
  }

  size_t votes() const { return votes_.size(); }

 private:
  struct Vote {
    explicit Vote(int n_ranks) : attestation(n_ranks) {}
    Attestation attestation;
    std::vector<std::shared_ptr<PendingVerdict>> waiting;
  };
  static void Tell(Vote& vote) {
    if (!vote.attestation.verdict()) return;
    for (const auto& each : vote.waiting) each->Resolve(*vote.attestation.verdict());
  }

  const int n_ranks_;
  std::map<std::tuple<Collective, int, uint32_t, int>, Vote> votes_;
};

class RankExchange final : public MaskExchange {
 public:
  RankExchange(Leader& leader, int rank) : leader_(leader), rank_(rank) {}
  std::shared_ptr<PendingVerdict> Pledge(const MaskPledge& pledge) override {
    return leader_.Pledge(rank_, pledge);
  }

 private:
  Leader& leader_;
  const int rank_;
};

class MaskAgreementTest : public ::testing::Test {
 protected:
  MaskAgreementTest() {
    for (int rank = 0; rank < 3; ++rank) {
      ranks_.push_back(std::make_unique<MaskAgreement>(
          std::make_unique<RankExchange>(leader_, rank),
          [this](const CallSituation&, const Verdict& verdict) { refusals_.push_back(verdict.reason); }));
    }
  }

  std::optional<ConfigMask> At(int rank, uint64_t call, const ConfigMask& seen,
                               const CallSituation& situation = kGradients) {
    return ranks_[static_cast<size_t>(rank)]->AgreedMask(situation, call, seen);
  }

  Leader leader_{3};
  std::vector<std::unique_ptr<MaskAgreement>> ranks_;
  std::vector<std::string> refusals_;
};

TEST_F(MaskAgreementTest, EqualMasksHoldFromTheSecondCallOnAllRanks) {
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(At(rank, 7, kAll), std::nullopt);
  for (const int rank : {2, 0, 1}) {
    EXPECT_EQ(At(rank, 9, kAll), kAll);
    EXPECT_EQ(ranks_[static_cast<size_t>(rank)]->Settled(kGradients), kAll);
  }
  EXPECT_EQ(refusals_, std::vector<std::string>{});
}

TEST_F(MaskAgreementTest, WhatHoldsIsWhatWasAgreedWhateverARankSeesLater) {
  for (int rank = 0; rank < 3; ++rank) At(rank, 0, kAll);
  EXPECT_EQ(At(0, 1, kRingSimple), kAll);
  EXPECT_EQ(At(1, 1, ConfigMask()), kAll);
  EXPECT_EQ(At(0, 2, kRingSimple), kAll);
}

TEST_F(MaskAgreementTest, AnotherMaskOnOneRankMeansNcclsChoiceOnAllAndNamesIt) {
  for (int rank = 0; rank < 3; ++rank) At(rank, 0, rank == 1 ? kRingSimple : kAll);
  for (uint64_t call = 1; call < 100; ++call) {
    for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(At(rank, call, kAll), std::nullopt);
  }
  ASSERT_EQ(refusals_.size(), 3u);
  for (const std::string& reason : refusals_) EXPECT_THAT(reason, HasSubstr("Ring:Simple on rank 1"));
  EXPECT_EQ(leader_.votes(), 1u);
}

TEST_F(MaskAgreementTest, RanksThatAreNotAtTheSameCallDoNotAgree) {
  At(0, 4, kAll);
  At(1, 5, kAll);
  At(2, 4, kAll);
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(At(rank, 6, kAll), std::nullopt);
  EXPECT_THAT(refusals_.at(0), HasSubstr("place in the stream of calls: 4 on rank 0, 5 on rank 1"));
}

TEST_F(MaskAgreementTest, LateRankMeansDefaultNowAndAnotherTryAtTheFourthCall) {
  At(0, 0, kAll);
  At(1, 0, kAll);
  leader_.TimePasses();
  EXPECT_EQ(At(0, 1, kAll), std::nullopt);
  // The late rank gets the verdict that the others got.
  for (uint64_t call = 0; call < 4; ++call) EXPECT_EQ(At(2, call, kAll), std::nullopt);
  for (uint64_t call = 2; call < 4; ++call) EXPECT_EQ(At(0, call, kAll), std::nullopt);
  for (uint64_t call = 1; call < 4; ++call) EXPECT_EQ(At(1, call, kAll), std::nullopt);
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(At(rank, 4, kAll), kAll) << rank;
  EXPECT_EQ(leader_.votes(), 2u);
}

TEST_F(MaskAgreementTest, QuestionsOfOneGroupAreOneCall) {
  // One thread drives all ranks, so no rank may wait before all have been asked.
  for (int question = 0; question < 5; ++question) {
    for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(At(rank, 0, kAll), std::nullopt);
  }
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(At(rank, 1, kAll), kAll);
}

TEST_F(MaskAgreementTest, SituationsAreApart) {
  const CallSituation averages{Collective::kAllReduce, SizeClass{40}, 10};
  for (int rank = 0; rank < 3; ++rank) At(rank, 0, kAll);
  for (int rank = 0; rank < 3; ++rank) At(rank, 1, kRingSimple, averages);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(At(rank, 2, kAll), kAll);
    EXPECT_EQ(At(rank, 3, kRingSimple, averages), kRingSimple);
  }
}

TEST_F(MaskAgreementTest, AQuestionAboutNoCallCountsNothing) {
  EXPECT_EQ(ranks_[0]->Settled(kGradients), std::nullopt);
  EXPECT_EQ(leader_.votes(), 0u);
}

TEST_F(MaskAgreementTest, ARankThatIsAlwaysLateEndsTheTries) {
  uint64_t call = 0;
  for (; call < 40'000; ++call) {
    EXPECT_EQ(At(0, call, kAll), std::nullopt);
    leader_.TimePasses();
  }
  EXPECT_EQ(leader_.votes(), 8u);
}

// Rank 2 never comes. The other ranks join 3 votes, which the leader ends as late, and no more.
TEST_F(MaskAgreementTest, WhereARankNeverCameTheOthersGoToSomeVotesOnly) {
  MaskAgreement limited(
      std::make_unique<RankExchange>(leader_, 0), [](const CallSituation&, const Verdict&) {}, 3);
  for (uint64_t call = 0; call < 1000; ++call) {
    const CallSituation situation{Collective::kAllReduce, SizeClass{static_cast<uint8_t>(call % 50)}, 9};
    EXPECT_EQ(limited.AgreedMask(situation, call, kAll), std::nullopt);
    leader_.TimePasses();
  }
  EXPECT_EQ(leader_.votes(), 3u);
}

// A vote that was held back is held at the next call after all ranks have come, not at the fourth call.
TEST_F(MaskAgreementTest, WhatWasHeldBackIsAskedAtItsNextCall) {
  for (int rank = 0; rank < 3; ++rank) {
    ranks_[static_cast<size_t>(rank)] = std::make_unique<MaskAgreement>(
        std::make_unique<RankExchange>(leader_, rank), [](const CallSituation&, const Verdict&) {}, 2);
  }
  const auto ask = [&](uint64_t round) {
    size_t held = 0;
    for (uint8_t size = 0; size < 10; ++size) {
      std::optional<ConfigMask> had;
      for (int rank = 0; rank < 3; ++rank)
        had = At(rank, round * 10 + size, kAll, {Collective::kAllReduce, SizeClass{size}, 9});
      held += had.has_value() ? 1 : 0;
    }
    return held;
  };
  EXPECT_EQ(ask(0), 0u);
  EXPECT_EQ(leader_.votes(), 2u);
  EXPECT_EQ(ask(1), 2u);
  EXPECT_EQ(leader_.votes(), 10u);
  EXPECT_EQ(ask(2), 10u);
}

TEST_F(MaskAgreementTest, WhereAllRanksCameOnceALateOneIsAskedAgain) {
  for (int rank = 0; rank < 3; ++rank) {
    ranks_[static_cast<size_t>(rank)] = std::make_unique<MaskAgreement>(
        std::make_unique<RankExchange>(leader_, rank), [](const CallSituation&, const Verdict&) {}, 3);
  }
  for (const uint64_t call : {0u, 1u}) {
    for (int rank = 0; rank < 3; ++rank) At(rank, call, kAll);
  }
  EXPECT_EQ(ranks_[0]->Settled(kGradients), kAll);
  const CallSituation late{Collective::kAllReduce, SizeClass{41}, 9};
  for (uint64_t call = 2; call < 40'002; ++call) {
    At(0, call, kAll, late);
    leader_.TimePasses();
  }
  EXPECT_EQ(leader_.votes(), 1u + 8u);
}

TEST_F(MaskAgreementTest, MoreSituationsThanItKeepsStayWithNccl) {
  for (uint32_t i = 0; i < 3000; ++i) {
    const CallSituation situation{Collective::kReduce, SizeClass{1}, i + 1};
    for (int rank = 0; rank < 3; ++rank) At(rank, 2 * i, kAll, situation);
    const auto first = At(0, 2 * i + 1, kAll, situation);
    for (int rank = 1; rank < 3; ++rank) EXPECT_EQ(At(rank, 2 * i + 1, kAll, situation), first) << i;
    EXPECT_EQ(first.has_value(), i < 768) << i;
  }
}

// Ranks drift apart by random steps, and verdicts come late at random. In any order, all ranks have the same
// mask at each call.
TEST(MaskAgreement, AllRanksHaveTheSameMaskAtEveryCall) {
  constexpr int kRanks = 4;
  constexpr size_t kCalls = 120;
  for (unsigned seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Leader leader(kRanks);
    std::vector<std::unique_ptr<MaskAgreement>> ranks;
    std::vector<std::vector<std::optional<ConfigMask>>> had(kRanks);
    for (int rank = 0; rank < kRanks; ++rank) {
      ranks.push_back(std::make_unique<MaskAgreement>(
          std::make_unique<RankExchange>(leader, rank), [](const CallSituation&, const Verdict&) {},
          seed % 2 == 0 ? 3 : 0));
    }
    const bool unlike = seed % 3 == 0;
    while (std::any_of(had.begin(), had.end(), [&](const auto& each) { return each.size() < kCalls; })) {
      const size_t rank = random() % kRanks;
      if (had[rank].size() >= kCalls) continue;
      const uint64_t call = had[rank].size();
      const CallSituation situation{Collective::kAllReduce, SizeClass{static_cast<uint8_t>(call % 3)}, 5};
      const bool other = unlike && rank == 2 && situation.size_class.index == 1;
      // In this thread nobody answers while a rank waits, so the leader's time runs out first.
      if (random() % 4 == 0 || call >= 3) leader.TimePasses();
      had[rank].push_back(ranks[rank]->AgreedMask(situation, call, other ? kRingSimple : kAll));
    }
    for (int rank = 1; rank < kRanks; ++rank) EXPECT_EQ(had[static_cast<size_t>(rank)], had[0]);
  }
}

TEST(Operands, TellDataTypesAndOperatorsApartAndNotHowOften) {
  const uint32_t sum = AddOperands(0, 7, 0);
  EXPECT_EQ(AddOperands(sum, 7, 0), sum);
  EXPECT_NE(AddOperands(0, 7, 4), sum);
  EXPECT_NE(AddOperands(0, 9, 0), sum);
  EXPECT_EQ(AddOperands(0, 7, 17), AddOperands(0, 7, 99));
  EXPECT_NE(AddOperands(sum, 9, 0), AddOperands(sum, 10, 0));
  EXPECT_LT(AddOperands(AddOperands(sum, 9, 0), 3, 2), 1u << 31);
}

}  // namespace
}  // namespace dynamiccl
