// SPDX-License-Identifier: Apache-2.0
// Tests the leader's side of switching without its thread. Connections break, with or without the leader's
// notice. Ranks come back for the verdict that they pledged to accept.
#include "plugin/runtime/switch_leadership.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>

#include "plugin/runtime/socket.h"
#include "src/base/clock.h"
#include "src/base/job_fail_point.h"
#include "src/base/log.h"
#include "src/base/unique_fd.h"
#include "src/policy/policy_file.h"
#include "tests/support/sample_policy.h"

namespace dynamiccl {
namespace {

constexpr ControlSecret kSecret{7, 7};
constexpr ControlToken kToken{3};
constexpr int kRanks = 2;

class SwitchLeadershipTest : public ::testing::Test {
 protected:
  SwitchLeadershipTest()
      : leadership_(std::make_unique<PolicyWatch>(policy_path_, Sha256Digest{1}),
                    [this](const ControlToken&) { return own_calls_; }) {
    leadership_.OnChangedFile([this] {
      ++changes_;
      changes_.notify_all();
    });
    for (int rank = 0; rank < kRanks; ++rank) EXPECT_TRUE(Connect(rank));
  }
  ~SwitchLeadershipTest() override {
    for (int rank = 0; rank < kRanks; ++rank) Break(rank);
  }

  bool Connect(int rank) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    Connection& connection = connections_[static_cast<size_t>(rank)];
    connection = {UniqueFd(ends[0]), UniqueFd(ends[1])};
    return leadership_.Join(ends[0], {kToken, kToken, rank, kRanks}, kSecret);
  }
  // Breaks a connection, and tells the leader as the control server does.
  void Break(int rank) {
    Connection& connection = connections_[static_cast<size_t>(rank)];
    leadership_.ConnectionLost(connection.leaders.get());
    connection = {};
  }
  bool Send(int rank, SwitchKind kind, uint64_t attempt, Refusal refusal = Refusal::kPassed) {
    SwitchMessage message;
    message.kind = kind;
    message.refusal = refusal;
    message.attempt = attempt;
    return leadership_.HandleMessage(connections_[static_cast<size_t>(rank)].leaders.get(),
                                     EncodeSwitch({kToken, message, {}}, kSecret));
  }
  // Returns the last message that the rank has received since the previous call.
  std::optional<SwitchMessage> LastReceived(int rank) {
    std::vector<std::byte> received(size_t{1} << 16);
    const ssize_t got =
        ::recv(connections_[static_cast<size_t>(rank)].ranks.get(), received.data(), received.size(), 0);
    std::optional<SwitchMessage> last;
    for (size_t at = 0; got > 0 && at < static_cast<size_t>(got);) {
      const auto rest = std::span(received).first(static_cast<size_t>(got)).subspan(at);
      const size_t bytes = MessageBytes(rest).value();
      const auto decoded = DecodeSwitch(rest.first(bytes), kToken, kSecret).value();
      last = decoded.message;
      if (last->kind == SwitchKind::kPrepare) received_table_ = decoded.table;
      at += bytes;
    }
    return last;
  }

  // Lets both ranks pledge for the attempt of `prepare`. This commits the attempt.
  void Pledge(const SwitchMessage& prepare) {
    ASSERT_EQ(prepare.kind, SwitchKind::kPrepare);
    for (int rank = 0; rank < kRanks; ++rank) EXPECT_TRUE(Send(rank, SwitchKind::kPledge, prepare.attempt));
    EXPECT_TRUE(LastReceived(1)->commit);
    *own_calls_ += 1'000'000;  // beyond the boundary
  }
  // Writes a policy file. Returns the attempt in which the leader asks for this policy.
  SwitchMessage PrepareForNewFile() {
    const auto policy = test::MakePolicyThatPrefers(Algorithm::kRing, Protocol::kSimple);
    EXPECT_TRUE(WritePolicyFile(policy_path_, *policy));
    const SwitchMessage prepare = NextReceived(1, 1);
    EXPECT_EQ(received_table_.policy, ReadPolicyDigest(policy_path_).value());
    return prepare;
  }

  // Returns the rank's next message. Waits while the leader's other thread reads files.
  SwitchMessage NextReceived(int rank, int64_t now_ns) {
    while (true) {
      const int before = changes_;
      leadership_.Tick(now_ns);
      if (const auto received = LastReceived(rank)) return *received;
      changes_.wait(before);
    }
  }

  // Returns an attempt for which both ranks pledged. Only rank 0 has read its verdict.
  uint64_t CommitUnheardByRankOne() {
    leadership_.Offer(kToken, {SwitchReason::kOperator, false, {std::byte{1}}, {}});
    leadership_.Tick(1);
    const auto prepare = LastReceived(1);
    EXPECT_TRUE(prepare && prepare->kind == SwitchKind::kPrepare);
    EXPECT_TRUE(Send(1, SwitchKind::kPledge, prepare->attempt));
    EXPECT_TRUE(Send(0, SwitchKind::kPledge, prepare->attempt));
    EXPECT_TRUE(LastReceived(0)->commit);
    return prepare->attempt;
  }

  struct Connection {
    UniqueFd leaders, ranks;
  };
  // The file is missing at first, so the leader has no policy to watch until a test writes the file.
  const std::string policy_path_ =
      ::testing::TempDir() + "/leadership-" + std::to_string(::getpid()) + ".dcpolicy";
  std::optional<uint64_t> own_calls_ = 10;
  std::atomic<int> changes_{0};  // counted by the leader's thread that reads files
  SwitchLeadership leadership_;
  std::array<Connection, kRanks> connections_;
  TableContents received_table_;  // contents of the last kPrepare in LastReceived
};

TEST_F(SwitchLeadershipTest, TellsTheVerdictToARankThatComesAgain) {
  const uint64_t attempt = CommitUnheardByRankOne();
  Break(1);
  ASSERT_TRUE(Connect(1));
  EXPECT_TRUE(Send(1, SwitchKind::kAsk, attempt));
  const auto received = LastReceived(1);
  ASSERT_TRUE(received);
  EXPECT_EQ(received->kind, SwitchKind::kVerdict);
  EXPECT_TRUE(received->commit);
}

TEST_F(SwitchLeadershipTest, ForgetsNoVerdictWhenAllConnectionsBreakAtOnce) {
  const uint64_t attempt = CommitUnheardByRankOne();
  Break(0);
  Break(1);
  leadership_.Tick(2'000'000'000);
  ASSERT_TRUE(Connect(1));
  EXPECT_TRUE(Send(1, SwitchKind::kAsk, attempt));
  const auto received = LastReceived(1);
  ASSERT_TRUE(received) << "rank 1 would wait for ever";
  EXPECT_TRUE(received->commit);
}

// In a job that runs for weeks, a connection may break. If the rank could not come back, the leader could
// never again revoke a choice that has become slow.
TEST_F(SwitchLeadershipTest, ARankThatComesAgainTakesPartInTheNextSwitch) {
  std::vector<SwitchOutcome::End> ends;
  const auto offer = [&](int64_t at) {
    leadership_.Offer(kToken, {SwitchReason::kRevocation, true, {}, [&](const SwitchOutcome& outcome) {
                                 ends.push_back(outcome.end);
                               }});
    leadership_.Tick(at * 1'000'000'000);
  };
  offer(1);
  ASSERT_TRUE(LastReceived(0));
  Break(1);
  EXPECT_EQ(ends, std::vector{SwitchOutcome::End::kRankLost});
  ASSERT_TRUE(Connect(1));
  offer(2);
  const auto prepare = LastReceived(1);
  ASSERT_TRUE(prepare && prepare->kind == SwitchKind::kPrepare);
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_TRUE(Send(rank, SwitchKind::kPledge, prepare->attempt));
  EXPECT_TRUE(LastReceived(1)->commit);
  EXPECT_EQ(ends.back(), SwitchOutcome::End::kCommitted);
}

// The one who requested a version must not wait for its outcome for ever.
TEST_F(SwitchLeadershipTest, TellsWhoeverAskedThatARankIsLost) {
  const uint64_t attempt = CommitUnheardByRankOne();
  int told = 0;
  // This request waits, because the leader's rank has not reached the boundary of the last version.
  leadership_.Offer(kToken, {SwitchReason::kRevocation, true, {}, [&](const SwitchOutcome& outcome) {
                               EXPECT_EQ(outcome.end, SwitchOutcome::End::kRankLost);
                               EXPECT_EQ(outcome.rank, 1);
                               ++told;
                             }});
  leadership_.Tick(1'000'000'000);
  EXPECT_EQ(told, 0);
  Break(1);
  EXPECT_EQ(told, 1);
  ASSERT_TRUE(Connect(1));
  EXPECT_TRUE(Send(1, SwitchKind::kAsk, attempt));
  EXPECT_TRUE(LastReceived(1)->commit);
}

// A pulled cable is reported to nobody, so the rank may notice it before the leader does.
TEST_F(SwitchLeadershipTest, TakesANewConnectionForOneThatBrokeUnseen) {
  const uint64_t attempt = CommitUnheardByRankOne();
  Connection unseen = std::move(connections_[1]);
  ASSERT_TRUE(Connect(1));
  EXPECT_TRUE(Send(1, SwitchKind::kAsk, attempt));
  EXPECT_TRUE(LastReceived(1)->commit);
  leadership_.ConnectionLost(unseen.leaders.get());
  EXPECT_TRUE(Send(1, SwitchKind::kAsk, attempt)) << "the old connection's end is not the new one's";
  EXPECT_TRUE(LastReceived(1)->commit);
}

std::atomic<int> g_lines{0};

// The file may never come to one node. In a job of weeks, its rank is asked for the file every five seconds.
TEST_F(SwitchLeadershipTest, NamesARankWithoutTheChangedPolicyOnce) {
  ASSERT_TRUE(
      WritePolicyFile(policy_path_, *test::MakePolicyThatPrefers(Algorithm::kRing, Protocol::kSimple)));
  SetLogSink([](LogLevel, std::string_view line) {
    if (line.find("rank 1 does not have the same file") != line.npos) ++g_lines;
  });
  constexpr int64_t kTenSeconds = 10'000'000'000;
  for (int times = 0; times < 3; ++times) {
    const auto prepare = NextReceived(1, MonotonicNanoseconds() + (1 + times) * kTenSeconds);
    ASSERT_EQ(prepare.kind, SwitchKind::kPrepare) << times;
    EXPECT_TRUE(Send(1, SwitchKind::kRefuse, prepare.attempt, Refusal::kUnusableTable));
    (void)LastReceived(1);
  }
  SetLogSink(nullptr);
  std::filesystem::remove(policy_path_);
  EXPECT_EQ(g_lines, 1);
}

TEST_F(SwitchLeadershipTest, AsksForTheChangedPolicyAgainAfterARevocationCameBetween) {
  (void)PrepareForNewFile();
  const Sha256Digest file = received_table_.policy;
  leadership_.Offer(kToken, {SwitchReason::kRevocation, false, {std::byte{1}}, {}});
  Pledge(NextReceived(1, 2));
  EXPECT_NE(received_table_.policy, file);
  Pledge(NextReceived(1, 10'000'000'000));
  EXPECT_EQ(received_table_.policy, file);
  std::filesystem::remove(policy_path_);
}

TEST_F(SwitchLeadershipTest, AnOfferFromBeforeAChangedPolicyKeepsThatPolicy) {
  const SwitchMessage prepare = PrepareForNewFile();
  const Sha256Digest file = received_table_.policy;
  leadership_.Offer(kToken, {SwitchReason::kOperator, false, {std::byte{1}}, {}});
  leadership_.Tick(2);
  Pledge(prepare);
  Pledge(NextReceived(1, 1'000'000'000));
  EXPECT_EQ(received_table_.policy, file);
  EXPECT_EQ(received_table_.plan, std::vector{std::byte{1}});
  std::filesystem::remove(policy_path_);
}

std::atomic<bool> g_file_hangs{false};
std::atomic<bool> g_file_is_read{false};

// Reading hangs if the server of the file system is gone. Calls wait for verdicts of the thread that ticks.
TEST_F(SwitchLeadershipTest, GivesVerdictsWhileAPolicyFileHangs) {
  ASSERT_TRUE(
      WritePolicyFile(policy_path_, *test::MakePolicyThatPrefers(Algorithm::kRing, Protocol::kSimple)));
  g_file_is_read = false;
  g_file_hangs = true;
  g_act_at_fail_point = [](JobFailPoint point) {
    if (point != JobFailPoint::kPolicyChanged) return;
    g_file_is_read = true;
    g_file_is_read.notify_all();
    g_file_hangs.wait(true);
  };
  leadership_.Tick(1);
  g_file_is_read.wait(false);
  (void)CommitUnheardByRankOne();
  const auto verdict = LastReceived(1);
  EXPECT_TRUE(verdict && verdict->commit);
  own_calls_ = 1000;
  leadership_.Tick(1'000'000'000);
  EXPECT_FALSE(LastReceived(1)) << "there is no other policy yet";
  g_file_hangs = false;
  g_file_hangs.notify_all();
  EXPECT_EQ(NextReceived(1, 2'000'000'000).kind, SwitchKind::kPrepare);
  g_act_at_fail_point = nullptr;
  std::filesystem::remove(policy_path_);
}

TEST_F(SwitchLeadershipTest, ForgetsACommunicatorThatItsProcessHasLeft) {
  (void)CommitUnheardByRankOne();
  Break(0);
  Break(1);
  own_calls_.reset();
  leadership_.Tick(2'000'000'000);
  EXPECT_EQ(leadership_.NextTickMs(), -1);
  EXPECT_FALSE(Connect(1));
}

}  // namespace
}  // namespace dynamiccl
