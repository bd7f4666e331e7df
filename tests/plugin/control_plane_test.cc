// SPDX-License-Identifier: Apache-2.0
// Tests the control plane over real sockets, with ranks as threads.
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <future>
#include <random>
#include <thread>

#include "plugin/runtime/control_client.h"
#include "plugin/runtime/control_server.h"
#include "plugin/runtime/pledge_sender.h"
#include "src/base/clock.h"

namespace dynamiccl {
namespace {

using ::testing::HasSubstr;

// A time-out that no test reaches, except those that mean to.
constexpr int kLongMs = 30'000;
constexpr ControlSecret kSecret{42, 1, 2, 3};
constexpr ControlToken kRoot{7};

class ControlPlane : public ::testing::Test {
 protected:
  void Start(int timeout_ms) {
    auto server = ControlServer::Start({"127.0.0.1"}, 0, timeout_ms);
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    server_->RegisterRoot(kRoot, kSecret);
  }

  RendezvousPoint Rendezvous() const { return {server_->address(), server_->port(), kRoot, kSecret}; }

  static PledgeMessage Pledge(int rank, int n_ranks, uint8_t communicator = 1,
                              const std::string& rules = "r") {
    PledgeMessage pledge{kRoot, ControlToken{communicator}, rank, n_ranks, {}, {}};
    pledge.values.rules = rules;
    pledge.of_leader = rank == 0;
    return pledge;
  }

  std::future<Result<Verdict>> Ask(const PledgeMessage& pledge) const {
    return std::async(std::launch::async, [rendezvous = Rendezvous(), pledge] {
      return PledgeAndWait(rendezvous, pledge, kLongMs);
    });
  }

  std::unique_ptr<ControlServer> server_;
};

TEST_F(ControlPlane, AllRanksGetAYesWhenTheyPledgeTheSame) {
  Start(kLongMs);
  for (uint8_t communicator = 1; communicator <= 20; ++communicator) {
    std::vector<std::future<Result<Verdict>>> answers;
    for (int rank = 0; rank < 6; ++rank) answers.push_back(Ask(Pledge(rank, 6, communicator)));
    for (auto& answer : answers) {
      const auto verdict = answer.get();
      ASSERT_TRUE(verdict) << verdict.error().message;
      EXPECT_TRUE(verdict->agreed) << verdict->reason;
    }
  }
}

// A leader keeps almost nothing about each finished vote. It collects finished votes and then sorts them;
// this test has more votes than it collects.
TEST_F(ControlPlane, AYesIsToldAgainHoweverManyCameAfterIt) {
  Start(kLongMs);
  constexpr int kSituations = 600;
  const auto pledge = [](int rank, int situation, const std::string& rules = "r") {
    PledgeMessage message = Pledge(rank, 2, 1, rules);
    message.communicator =
        ControlToken{9, static_cast<uint8_t>(situation), static_cast<uint8_t>(situation >> 8)};
    message.kind = VoteKind::kSituation;
    return message;
  };
  const auto ask = [this](const auto& pledged) { return PledgeAndWait(Rendezvous(), pledged, kLongMs); };
  std::thread other([&] {
    for (int situation = 0; situation < kSituations; ++situation) ask(pledge(1, situation));
  });
  for (int situation = 0; situation < kSituations; ++situation) {
    const auto verdict = ask(pledge(0, situation));
    EXPECT_TRUE(verdict && verdict->agreed) << situation;
  }
  other.join();
  for (int situation = 0; situation < kSituations; situation += 7) {
    const auto verdict = ask(pledge(1, situation, "other"));
    EXPECT_TRUE(verdict && verdict->agreed) << situation;
  }
}

TEST_F(ControlPlane, ADifferenceIsANoForAllAtOnce) {
  Start(kLongMs);
  auto first = Ask(Pledge(0, 3));
  auto second = Ask(Pledge(1, 3, 1, "other"));
  for (auto* answer : {&first, &second}) {
    const auto verdict = answer->get();
    ASSERT_TRUE(verdict);
    EXPECT_FALSE(verdict->agreed);
    EXPECT_THAT(verdict->reason, HasSubstr("override rules"));
  }
  // The third rank comes late and gets the same verdict.
  EXPECT_THAT(Ask(Pledge(2, 3)).get()->reason, HasSubstr("override rules"));
}

TEST_F(ControlPlane, MissingRankIsANoAfterTheTimeoutAndTheNextVoteIsNotWaitedFor) {
  Start(100);
  const auto verdict = Ask(Pledge(0, 2)).get();
  ASSERT_TRUE(verdict);
  EXPECT_TRUE(verdict->timed_out);
  EXPECT_THAT(verdict->reason, HasSubstr("1 of 2 ranks pledged in time; present 0"));
  const auto next = Ask(Pledge(0, 2, 2)).get();
  ASSERT_TRUE(next);
  EXPECT_TRUE(next->timed_out);
}

TEST_F(ControlPlane, RankThatDeclinesFreesTheOthers) {
  Start(kLongMs);
  auto waiting = Ask(Pledge(0, 2));
  PledgeMessage declines = Pledge(1, 2);
  declines.declines = "it runs in mode off";
  ASSERT_TRUE(PledgeAndLeave(Rendezvous(), declines, kLongMs));
  EXPECT_THAT(waiting.get()->reason, HasSubstr("rank 1 takes no part"));
}

TEST_F(ControlPlane, RankThatGoesAwayAfterItsPledgeIsBoundByIt) {
  Start(kLongMs);
  ASSERT_TRUE(PledgeAndLeave(Rendezvous(), Pledge(1, 2), kLongMs));
  const auto verdict = Ask(Pledge(0, 2)).get();
  ASSERT_TRUE(verdict);
  // The rank is bound by its pledge. It may only have lost its connection. If the rank is dead, so is its
  // communicator.
  EXPECT_TRUE(verdict->agreed) << verdict->reason;
}

TEST_F(ControlPlane, WrongSecretGetsNoAnswerAndDisturbsNobody) {
  Start(kLongMs);
  RendezvousPoint wrong = Rendezvous();
  wrong.secret[3] ^= 1;
  const auto refused = PledgeAndWait(wrong, Pledge(0, 2), 50);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("no answer"));
  auto first = Ask(Pledge(0, 2));
  auto second = Ask(Pledge(1, 2));
  EXPECT_TRUE(first.get()->agreed && second.get()->agreed);
}

TEST_F(ControlPlane, GarbageAndHalfMessagesAreDropped) {
  Start(kLongMs);
  auto waiting = Ask(Pledge(0, 2));
  std::mt19937 random(1);
  const auto whole = EncodePledge(Pledge(1, 2), kSecret);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::byte> bytes(whole.begin(), whole.begin() + static_cast<long>(random() % whole.size()));
    if (round % 2 == 0) {
      for (auto& byte : bytes) byte = static_cast<std::byte>(random());
    }
    const auto fd = Connect(server_->address(), server_->port(), kLongMs);
    ASSERT_TRUE(fd);
    (void)SendAll(fd->get(), bytes);
  }
  EXPECT_TRUE(Ask(Pledge(1, 2)).get()->agreed);
  EXPECT_TRUE(waiting.get()->agreed);
}

TEST_F(ControlPlane, MessageInSinglesBytesIsUnderstood) {
  Start(kLongMs);
  const auto fd = Connect(server_->address(), server_->port(), kLongMs);
  ASSERT_TRUE(fd);
  for (const std::byte& byte : EncodePledge(Pledge(0, 2), kSecret))
    ASSERT_TRUE(SendAll(fd->get(), {&byte, 1}));
  EXPECT_TRUE(Ask(Pledge(1, 2)).get()->agreed);
}

TEST_F(ControlPlane, RanksWaitForALeaderThatIsNotThereYet) {
  Start(kLongMs);
  // The leader does not know the communicator yet, so the rank is turned away and asks again.
  RendezvousPoint later{server_->address(), server_->port(), ControlToken{9}, kSecret};
  PledgeMessage pledge = Pledge(0, 1, 9);
  pledge.root = later.root;
  auto answer = std::async(std::launch::async, [&] { return PledgeAndWait(later, pledge, kLongMs); });
  server_->RegisterRoot(later.root, kSecret);
  EXPECT_TRUE(answer.get()->agreed);
}

TEST_F(ControlPlane, NobodyThereIsAnErrorAfterTheTimeToConnect) {
  Start(kLongMs);
  const RendezvousPoint rendezvous = Rendezvous();
  server_.reset();
  EXPECT_FALSE(PledgeAndWait(rendezvous, Pledge(0, 2), 50));
}

TEST_F(ControlPlane, LeaderThatEndsFreesThoseWhoWait) {
  Start(kLongMs);
  auto waiting = std::async(std::launch::async, [rendezvous = Rendezvous()] {
    return PledgeAndWait(rendezvous, Pledge(0, 2), 50);
  });
  server_.reset();
  EXPECT_FALSE(waiting.get());
}

// Returns a pledge about a situation on communicator 1, such as a tuner's first question leads to.
PledgeMessage AboutSituation(int rank, int n_ranks, int attempt, const std::string& mask = "Ring:Simple") {
  PledgeMessage pledge;
  pledge.root = kRoot;
  pledge.communicator = SituationToken(ControlToken{1}, {Collective::kAllReduce, SizeClass{7}, 3}, attempt);
  pledge.member = rank;
  pledge.n_ranks = n_ranks;
  pledge.values.mask = mask;
  pledge.kind = VoteKind::kSituation;
  return pledge;
}

TEST_F(ControlPlane, PledgesThatNobodyWaitsForGetTheirVerdictsToo) {
  Start(kLongMs);
  PledgeSender sender;
  std::vector<std::shared_ptr<PendingVerdict>> verdicts;
  for (int rank = 0; rank < 4; ++rank) {
    for (int attempt = 0; attempt < 30; ++attempt) {
      const bool other = attempt == 7 && rank == 2;
      verdicts.push_back(sender.Send(Rendezvous(),
                                     AboutSituation(rank, 4, attempt, other ? "Tree:LL" : "Ring:Simple"),
                                     kLongMs, nullptr));
    }
  }
  for (size_t i = 0; i < verdicts.size(); ++i) {
    EXPECT_EQ(verdicts[i]->Wait().agreed, i % 30 != 7) << verdicts[i]->Wait().reason;
  }
  EXPECT_EQ(verdicts[7]->Wait().reason,
            "configurations that NCCL offers: Ring:Simple on rank 0, Tree:LL on rank 2");
}

TEST_F(ControlPlane, LateSituationsAreRefusedSoonAndTwentyOfThemEndAllWaiting) {
  Start(200);  // 10 ms per situation
  PledgeSender sender;
  for (int attempt = 0; attempt < 20; ++attempt) {
    const Verdict verdict =
        sender.Send(Rendezvous(), AboutSituation(0, 2, attempt), kLongMs, nullptr)->Wait();
    EXPECT_TRUE(verdict.timed_out) << attempt;
  }
  // Both ranks come in time now, but ranks no longer wait for any situation.
  const auto first = sender.Send(Rendezvous(), AboutSituation(0, 2, 20), kLongMs, nullptr);
  const auto second = sender.Send(Rendezvous(), AboutSituation(1, 2, 20), kLongMs, nullptr);
  EXPECT_TRUE(first->Wait().timed_out && second->Wait().timed_out);
}

TEST_F(ControlPlane, OneLateSituationDoesNotEndTheVotesOfOthers) {
  Start(kLongMs / 100);
  PledgeSender sender;
  EXPECT_TRUE(sender.Send(Rendezvous(), AboutSituation(0, 2, 0), kLongMs, nullptr)->Wait().timed_out);
  EXPECT_TRUE(Ask(Pledge(0, 1)).get()->agreed);
}

TEST_F(ControlPlane, LeaderThatIsNotThereResolvesThePledgeAsLate) {
  Start(kLongMs);
  const RendezvousPoint rendezvous = Rendezvous();
  server_.reset();
  PledgeSender sender;
  const auto verdict = sender.Send(rendezvous, AboutSituation(0, 2, 0), 50, nullptr);
  EXPECT_TRUE(verdict->Wait().timed_out);
  EXPECT_THAT(verdict->Wait().reason, HasSubstr("no answer from 127.0.0.1"));
}

// A leader that the test controls step by step.
class LeaderByHand {
 public:
  LeaderByHand() : listening_(std::move(*Listen("127.0.0.1", 0))) {}
  RendezvousPoint Rendezvous() const { return {listening_.address, listening_.port, kRoot, kSecret}; }
  // Returns the next connection once its whole pledge has arrived.
  ControlSocket TakePledge() const {
    pollfd waiting{listening_.fd.get(), POLLIN, 0};
    int ready = -1;
    while (ready < 0) ready = ::poll(&waiting, 1, kLongMs);
    if (ready == 0) {
      ADD_FAILURE() << "nobody connected";
      return {};
    }
    ControlSocket fd = std::move(*Accept(listening_.fd.get()));
    std::vector<std::byte> received(kMaxMessageBytes);
    size_t n = 0;
    while (n < kMessageHeaderBytes || n < *MessageBytes(std::span(received).first(n))) {
      waiting = {fd.get(), POLLIN, 0};
      if (::poll(&waiting, 1, kLongMs) <= 0) break;
      const ssize_t got = ::recv(fd.get(), received.data() + n, received.size() - n, 0);
      if (got <= 0) break;
      n += static_cast<size_t>(got);
    }
    return fd;
  }
  void End() { listening_.fd.Reset(); }
  // Makes the host unreachable: the process lives, but no connection to it succeeds any more.
  void Vanish() {
    ASSERT_EQ(::listen(listening_.fd.get(), 0), 0);
    constexpr int kUnansweredMs = 100;
    while (auto fd = Connect(listening_.address, listening_.port, kUnansweredMs))
      fill_.push_back(std::move(*fd));
  }
  // Accepts a connection that comes within a short time, and drops it.
  void TurnAway() const {
    constexpr int kSoonMs = 20;
    pollfd waiting{listening_.fd.get(), POLLIN, 0};
    if (::poll(&waiting, 1, kSoonMs) > 0) (void)Accept(listening_.fd.get());
  }

 private:
  ListeningSocket listening_;
  std::vector<ControlSocket> fill_;
};

// The time within which a pledge must have been sent, even on a busy machine.
constexpr int kReachMs = 1000;

void WaitPast(int milliseconds) {
  const int64_t until = MonotonicNanoseconds() + int64_t{milliseconds} * 1'000'000;
  while (MonotonicNanoseconds() < until) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// Other ranks may have got a "yes" while this rank's connection was broken.
TEST_F(ControlPlane, RankThatHasPledgedAsksUntilItHasTheVerdictThatTheOthersGot) {
  LeaderByHand leader;
  PledgeSender sender;
  const PledgeMessage pledge = AboutSituation(1, 2, 0);
  const auto verdict = sender.Send(leader.Rendezvous(), pledge, kReachMs, nullptr);
  for (int broken = 0; broken < 3; ++broken) leader.TakePledge();
  WaitPast(kReachMs);
  EXPECT_FALSE(verdict->ready());
  const ControlSocket fd = leader.TakePledge();
  ASSERT_TRUE(SendAll(fd.get(), EncodeVerdict(pledge.communicator, {.agreed = true}, kSecret)));
  EXPECT_TRUE(verdict->Wait().agreed);
}

TEST_F(ControlPlane, RankThatHasPledgedToALeaderThatDiedIsFreedByTheEndOfTheCommunicatorAlone) {
  LeaderByHand leader;
  PledgeSender sender;
  const auto gone = std::make_shared<std::atomic<bool>>(false);
  const auto verdict = sender.Send(leader.Rendezvous(), AboutSituation(1, 2, 0), kReachMs, gone);
  const auto other = sender.Send(leader.Rendezvous(), AboutSituation(1, 2, 1), kReachMs, nullptr);
  leader.TakePledge();
  leader.TakePledge();
  leader.End();
  WaitPast(kReachMs);
  EXPECT_FALSE(verdict->ready());
  // The sender has given up this leader. A pledge that was never sent binds nobody, so it need not wait.
  const auto late = sender.Send(leader.Rendezvous(), AboutSituation(1, 2, 2), kLongMs, nullptr);
  EXPECT_TRUE(late->Wait().timed_out);
  gone->store(true);
  sender.ReleaseGone();
  EXPECT_FALSE(verdict->Wait().agreed);
  EXPECT_FALSE(other->ready());
}

PledgeMessage AboutInit(int rank, int n_ranks, uint8_t communicator = 1, const std::string& ctas = "") {
  PledgeMessage pledge{kRoot, InitToken(ControlToken{communicator}), rank, n_ranks, {}, {}, VoteKind::kInit};
  pledge.values.ctas = ctas;
  pledge.of_leader = rank == 0;
  return pledge;
}

TEST_F(ControlPlane, InitsAreAgreedUponWhereAllSetTheSame) {
  Start(kLongMs);
  PledgeSender sender;
  const auto ask = [&](int rank, uint8_t communicator, const char* ctas) {
    return sender.Send(Rendezvous(), AboutInit(rank, 2, communicator, ctas), kLongMs, nullptr);
  };
  const auto first = ask(0, 1, "minCTAs=8"), second = ask(1, 1, "minCTAs=8");
  EXPECT_TRUE(first->Wait().agreed && second->Wait().agreed);
  const auto other = ask(0, 2, "minCTAs=8"), without = ask(1, 2, "");
  EXPECT_FALSE(other->Wait().agreed);
  EXPECT_EQ(without->Wait(), other->Wait());
  EXPECT_THAT(other->Wait().reason, HasSubstr("channels that rules set for the communicator: "));
  // The ranks' tables do not differ, so a vote about tables still agrees.
  auto table = Ask(Pledge(0, 2, 2)), others = Ask(Pledge(1, 2, 2));
  EXPECT_TRUE(table.get()->agreed && others.get()->agreed);
}

// No rank may leave NCCL's init until the process that made the id is in it.
TEST_F(ControlPlane, InitsAreNotAgreedUponWithoutTheProcessThatMadeTheId) {
  Start(kLongMs);
  PledgeSender sender;
  const auto first = sender.Send(Rendezvous(), AboutInit(1, 2), kLongMs, nullptr);
  const auto second = sender.Send(Rendezvous(), AboutInit(2, 2), kLongMs, nullptr);
  EXPECT_FALSE(first->Wait().agreed || second->Wait().agreed);
}

// Programs may start at different times, but all of them are inside NCCL's init together.
TEST_F(ControlPlane, RankThatWasLateToAnInitIsWaitedForWhenItAttests) {
  Start(kReachMs);
  PledgeSender sender;
  EXPECT_THAT(sender.Send(Rendezvous(), AboutInit(0, 2), kLongMs, nullptr)->Wait().reason,
              HasSubstr("missing 1"));
  EXPECT_TRUE(sender.Send(Rendezvous(), AboutInit(1, 2), kLongMs, nullptr)->Wait().timed_out);
  // A second vote on the same init also times out, because rank 1 sends no pledge for it.
  EXPECT_TRUE(sender.Send(Rendezvous(), AboutInit(0, 2, 2), kLongMs, nullptr)->Wait().timed_out);
  ASSERT_TRUE(PledgeAndLeave(Rendezvous(), Pledge(1, 2), kLongMs));
  EXPECT_TRUE(Ask(Pledge(0, 2)).get()->agreed);
}

TEST_F(ControlPlane, RankThatNeverCameToAnInitIsNotWaitedForAgain) {
  Start(kReachMs);
  PledgeSender sender;
  const auto first = sender.Send(Rendezvous(), AboutInit(0, 3), kLongMs, nullptr);
  const auto second = sender.Send(Rendezvous(), AboutInit(2, 3), kLongMs, nullptr);
  EXPECT_TRUE(first->Wait().timed_out && second->Wait().timed_out);
  const auto verdict = Ask(Pledge(0, 3)).get();
  ASSERT_TRUE(verdict);
  EXPECT_EQ(*verdict, first->Wait());
  EXPECT_THAT(verdict->reason, HasSubstr("missing 1"));
}

// Ranks that took part in the late init pledge about no other init. Ranks that are new to the job do not know
// this.
TEST_F(ControlPlane, RanksThatAreNewAfterALateInitDoNotEndTheVotesOfOthers) {
  Start(kReachMs);
  PledgeSender sender;
  EXPECT_TRUE(sender.Send(Rendezvous(), AboutInit(0, 2), kLongMs, nullptr)->Wait().timed_out);
  EXPECT_TRUE(sender.Send(Rendezvous(), AboutInit(1, 2), kLongMs, nullptr)->Wait().timed_out);
  const auto newcomer = sender.Send(Rendezvous(), AboutInit(2, 3, 2), kLongMs, nullptr);
  EXPECT_TRUE(newcomer->Wait().timed_out) << "nobody waits for an init again";
  for (const int rank : {1, 2}) ASSERT_TRUE(PledgeAndLeave(Rendezvous(), Pledge(rank, 3, 2), kLongMs));
  EXPECT_TRUE(Ask(Pledge(0, 3, 2)).get()->agreed);
  ASSERT_TRUE(PledgeAndLeave(Rendezvous(), Pledge(1, 2, 3), kLongMs));
  EXPECT_TRUE(Ask(Pledge(0, 2, 3)).get()->agreed);
}

TEST_F(ControlPlane, RankThatHasPledgedAboutAnInitIsFreedByTheEndOfTheLeader) {
  LeaderByHand leader;
  PledgeSender sender;
  const auto verdict = sender.Send(leader.Rendezvous(), AboutInit(1, 2), kReachMs, nullptr);
  leader.TakePledge();
  leader.TakePledge();
  EXPECT_FALSE(verdict->ready()) << "a connection that breaks is no verdict";
  leader.End();
  EXPECT_FALSE(verdict->Wait().agreed);
}

// During an init there is no handle yet that the program could abort.
TEST_F(ControlPlane, RankThatHasPledgedAboutAnInitIsFreedWhenItsLeaderCannotBeReached) {
  LeaderByHand leader;
  PledgeSender sender(kReachMs);
  const auto verdict = sender.Send(leader.Rendezvous(), AboutInit(1, 2), kLongMs, nullptr);
  const auto other = sender.Send(leader.Rendezvous(), AboutSituation(1, 2, 0), kLongMs, nullptr);
  {
    const ControlSocket first = leader.TakePledge(), second = leader.TakePledge();
    // A rank with a connection does not count as separated, however long the verdict takes.
    WaitPast(2 * kReachMs);
    EXPECT_FALSE(verdict->ready());
    leader.Vanish();
  }
  EXPECT_TRUE(verdict->Wait().timed_out);
  EXPECT_THAT(verdict->Wait().reason, HasSubstr("no connection to 127.0.0.1"));
  EXPECT_FALSE(other->ready()) << "a situation's is freed by the end of the communicator alone";
}

TEST_F(ControlPlane, RankThatHasPledgedAboutAnInitIsFreedWhereEveryConnectionIsDropped) {
  LeaderByHand stranger;
  PledgeSender sender(kReachMs);
  const auto verdict = sender.Send(stranger.Rendezvous(), AboutInit(1, 2), kLongMs, nullptr);
  while (!verdict->ready()) stranger.TurnAway();
  EXPECT_THAT(verdict->Wait().reason, HasSubstr("no connection to 127.0.0.1"));
}

TEST_F(ControlPlane, LeaderAnswersEveryPledgeOfADecidedVoteAlike) {
  Start(kLongMs);
  PledgeSender sender;
  // Rank 0 pledges, leaves before the verdict, and later asks again.
  ASSERT_TRUE(PledgeAndLeave(Rendezvous(), AboutSituation(0, 2, 0), kLongMs));
  EXPECT_TRUE(sender.Send(Rendezvous(), AboutSituation(1, 2, 0), kLongMs, nullptr)->Wait().agreed);
  for (int again = 0; again < 3; ++again)
    EXPECT_TRUE(sender.Send(Rendezvous(), AboutSituation(0, 2, 0), kLongMs, nullptr)->Wait().agreed);
}

TEST_F(ControlPlane, LeadersThatCannotBeReachedCostAJobTwentyShortWaits) {
  Start(kLongMs);
  RendezvousPoint nowhere = Rendezvous();
  nowhere.address = "192.0.2.1";  // an address for documentation, which no host has
  PledgeSender sender;
  for (int attempt = 0; attempt < kMaxLateSituations; ++attempt)
    EXPECT_TRUE(sender.Send(nowhere, AboutSituation(0, 2, attempt), 1, nullptr)->Wait().timed_out);
  EXPECT_TRUE(sender.Send(nowhere, AboutSituation(0, 2, 99), kLongMs, nullptr)->Wait().timed_out);
}

TEST_F(ControlPlane, SenderThatEndsLeavesNobodyWaiting) {
  Start(kLongMs);
  std::shared_ptr<PendingVerdict> verdict;
  {
    PledgeSender sender;
    verdict = sender.Send(Rendezvous(), AboutSituation(0, 2, 0), kLongMs, nullptr);
  }
  EXPECT_TRUE(verdict->Wait().timed_out);
}

}  // namespace
}  // namespace dynamiccl
