// SPDX-License-Identifier: Apache-2.0
// Tests ranks and their leader over real connections that lose messages. The tests lose every subset of the
// first messages about a vote or a switch. A lost message either breaks its connection or leaves it open. All
// ranks must get the verdict, and each loss may cost only a bounded time.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "plugin/runtime/control_server.h"
#include "plugin/runtime/pledge_sender.h"
#include "plugin/runtime/switch_thread.h"
#include "src/base/clock.h"
#include "src/base/job_fail_point.h"

namespace dynamiccl {
namespace {

constexpr ControlSecret kSecret{5, 5};
constexpr ControlToken kRoot{255};
constexpr int kRanks = 2;
// For each subset of the first messages, there is one subject that loses it. A subject is a vote or a
// communicator. Bit i of the subject's number tells whether its i-th message is lost.
constexpr uint32_t kDisturbed = 6;
constexpr size_t kSubjects = size_t{1} << kDisturbed;
constexpr int64_t kMillisecondNs = 1'000'000;
// A busy machine may add this to any time. Even so, one loss costs less than the 5 s after which a leader
// drops a silent connection.
constexpr int64_t kBusyNs = 2'500 * kMillisecondNs;

std::atomic<bool> g_cuts{false};  // a lost message breaks its connection
std::array<std::atomic<uint32_t>, kSubjects> g_messages{};

ControlToken TokenOf(size_t subject) {
  return {static_cast<uint8_t>(subject)};
}

// Joins are lost too, but only after the first message of another kind, because no call waits before that
// message.
Status LoseByNumber(int fd, std::span<const std::byte> bytes, SendBytes send) {
  const ControlKind kind = KindOf(bytes);
  const bool is_join = kind == ControlKind::kJoin;
  const size_t root = is_join || kind == ControlKind::kPledge ? sizeof(ControlToken) : 0;
  const auto subject = static_cast<size_t>(bytes[kMessageHeaderBytes + root]);
  if (is_join && g_messages[subject] == 0) return send(fd, bytes);
  const uint32_t place = g_messages[subject]++;
  if (place >= kDisturbed || (subject >> place & 1u) == 0) return send(fd, bytes);
  if (g_cuts) ::shutdown(fd, SHUT_RDWR);
  return {};
}

// While this object lives, messages are lost.
class Disturbance {
 public:
  explicit Disturbance(bool cuts) {
    g_cuts = cuts;
    for (auto& messages : g_messages) messages = 0;
    g_send_message.store(&LoseByNumber);
  }
  ~Disturbance() { g_send_message.store(nullptr); }
  Disturbance(const Disturbance&) = delete;
  Disturbance& operator=(const Disturbance&) = delete;
};

std::string NameOfLoss(bool cuts) {
  return cuts ? "WithTheConnection" : "Alone";
}

struct LossInVotes {
  VoteKind kind = VoteKind::kSituation;
  bool cuts = false;
};

class LostInVotes : public ::testing::TestWithParam<LossInVotes> {};

TEST_P(LostInVotes, EachMessageCostsNoMoreThanAnOverdueAnswer) {
  const Disturbance disturbance(GetParam().cuts);
  // The ranks expect the verdict within kLeaderMs and must connect within this time. The leader waits much
  // longer, so it waits for every pledge.
  constexpr int kLeaderMs = 1'000;
  constexpr int kLongMs = 600'000;
  const auto server = std::move(*ControlServer::Start({"127.0.0.1"}, 0, kLongMs));
  server->RegisterRoot(kRoot, kSecret);
  PledgeSender sender;
  std::vector<size_t> votes(kSubjects);
  std::iota(votes.begin(), votes.end(), size_t{0});
  // The test waits for verdicts in this order, beginning with the votes that lose the fewest messages.
  std::stable_sort(votes.begin(), votes.end(),
                   [](size_t a, size_t b) { return std::popcount(a) < std::popcount(b); });
  const int64_t begun_ns = MonotonicNanoseconds();
  std::vector<std::shared_ptr<PendingVerdict>> verdicts;
  for (const size_t vote : votes) {
    for (int rank = 0; rank < kRanks; ++rank) {
      PledgeMessage pledge{kRoot, TokenOf(vote), rank, kRanks, {}, {}, GetParam().kind, rank == 0};
      verdicts.push_back(
          sender.Send({server->address(), server->port(), kRoot, kSecret}, pledge, kLeaderMs, nullptr));
    }
  }
  // The sender checks for overdue answers 20 times per second.
  constexpr int64_t kOfALossNs = (kLeaderMs + 50) * kMillisecondNs + kAnswerNs;
  for (size_t i = 0; i < verdicts.size(); ++i) {
    const size_t vote = votes[i / kRanks];
    EXPECT_TRUE(verdicts[i]->Wait().agreed) << verdicts[i]->Wait().reason;
    const int64_t took_ns = MonotonicNanoseconds() - begun_ns;
    EXPECT_LT(took_ns, std::popcount(vote) * kOfALossNs + kBusyNs) << "vote " << vote;
  }
}

INSTANTIATE_TEST_SUITE_P(Each, LostInVotes,
                         ::testing::Values(LossInVotes{VoteKind::kSituation, false},
                                           LossInVotes{VoteKind::kSituation, true},
                                           LossInVotes{VoteKind::kInit, false},
                                           LossInVotes{VoteKind::kInit, true}),
                         [](const auto& loss) {
                           const bool init = loss.param.kind == VoteKind::kInit;
                           return (init ? "Init" : "Situation") + NameOfLoss(loss.param.cuts);
                         });

// A rank. The test's thread issues its calls.
struct SwitchingRank {
  std::shared_ptr<SwitchableTables> tables;
  uint64_t call = 0;
  int64_t waits_since_ns = 0;  // 0: no call waits
  int64_t longest_ns = 0;
};

class LostInSwitches : public ::testing::TestWithParam<bool> {
 protected:
  LostInSwitches() {
    auto leadership = std::make_unique<SwitchLeadership>(
        std::make_unique<PolicyWatch>("/no/such/policy", Sha256Digest{}),
        [this](const ControlToken& token) { return thread_.CallsOf(token); });
    server_ = std::move(*ControlServer::Start({"127.0.0.1"}, 0, 1000, std::move(leadership)));
    server_->RegisterRoot(kRoot, kSecret);
    for (size_t subject = 0; subject < kSubjects; ++subject) {
      for (int rank = 0; rank < kRanks; ++rank) Join(subject, rank);
    }
  }
  ~LostInSwitches() override {
    server_.reset();
    for (const auto& ranks : ranks_) {
      for (const SwitchingRank& rank : ranks) thread_.Leave(rank.tables);
    }
  }

  void Join(size_t subject, int rank) {
    SwitchingRank& joins = ranks_[subject][static_cast<size_t>(rank)];
    joins.tables = std::make_shared<SwitchableTables>(
        engine_,
        [this](const std::shared_ptr<const Policy>&, std::span<const std::byte>) { return engine_; });
    const RendezvousPoint rendezvous{server_->address(), server_->port(), kRoot, kSecret};
    thread_.Join(rendezvous, {kRoot, TokenOf(subject), rank, kRanks}, joins.tables);
  }

  // Offers the next table of a communicator unless an offer is in progress.
  void Offer(size_t subject) {
    if (offered_[subject].exchange(true)) return;
    TableOffer offer{SwitchReason::kOperator, false, {std::byte{1}}, [this, subject](const auto& outcome) {
                       commits_[subject] += outcome.end == SwitchOutcome::End::kCommitted ? 1 : 0;
                       offered_[subject] = false;
                     }};
    ASSERT_TRUE(server_->OfferTable(TokenOf(subject), std::move(offer)));
  }

  // Issues the rank's next call, or checks whether the call still waits.
  void Call(SwitchingRank& rank, uint64_t slowest) {
    constexpr uint64_t kRunAhead = 64;
    if (rank.call > slowest + kRunAhead) return;
    CallGate& gate = rank.tables->gate();
    gate.Begin(rank.call);
    if (!gate.TryPass(rank.call)) {
      if (rank.waits_since_ns == 0) rank.waits_since_ns = MonotonicNanoseconds();
      return;
    }
    ++rank.call;
    if (rank.waits_since_ns == 0) return;
    rank.longest_ns = std::max(rank.longest_ns, MonotonicNanoseconds() - rank.waits_since_ns);
    rank.waits_since_ns = 0;
    ++waits_;
  }

  // True once a communicator has lost all messages that it must lose and has used two tables.
  bool IsOver(size_t subject) const { return g_messages[subject] >= kDisturbed && commits_[subject] >= 2; }

  const std::shared_ptr<DecisionEngine> engine_ = std::make_shared<DecisionEngine>(EngineOptions{});
  std::array<std::array<SwitchingRank, kRanks>, kSubjects> ranks_;
  std::array<std::atomic<bool>, kSubjects> offered_{};
  std::array<std::atomic<int>, kSubjects> commits_{};
  int waits_ = 0;
  SwitchThread thread_{"", nullptr};
  std::unique_ptr<ControlServer> server_;
};

TEST_P(LostInSwitches, NoCallWaitsLongForAVerdict) {
  const Disturbance disturbance(GetParam());
  std::set<size_t> under_way;
  for (size_t subject = 0; subject < kSubjects; ++subject) under_way.insert(subject);
  while (!under_way.empty()) {
    // The program computes between calls.
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (const size_t subject : under_way) {
      Offer(subject);
      auto& ranks = ranks_[subject];
      const uint64_t slowest = std::min(ranks[0].call, ranks[1].call);
      for (SwitchingRank& rank : ranks) Call(rank, slowest);
    }
    std::erase_if(under_way, [this](size_t subject) { return IsOver(subject); });
  }
  EXPECT_GT(waits_, 0);
  // A rank asks for the verdict every 50 ms and reconnects within 100 ms. The leader gives up an attempt
  // after kSwitchAttemptNs.
  constexpr int64_t kOfALossNs = kSwitchRepeatNs + 100 * kMillisecondNs;
  for (size_t subject = 0; subject < kSubjects; ++subject) {
    for (const SwitchingRank& rank : ranks_[subject]) {
      EXPECT_LT(rank.longest_ns, kSwitchAttemptNs + std::popcount(subject) * kOfALossNs + kBusyNs) << subject;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Each, LostInSwitches, ::testing::Bool(),
                         [](const auto& cuts) { return NameOfLoss(cuts.param); });

}  // namespace
}  // namespace dynamiccl
