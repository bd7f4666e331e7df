// SPDX-License-Identifier: Apache-2.0
// Tests tables that the leader's process offers over real sockets. Ranks are threads that issue calls as fast
// as they can. They may be at different calls, and each has its own side of switching.
#include <gmock/gmock.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <future>
#include <mutex>
#include <thread>

#include "plugin/runtime/control_server.h"
#include "plugin/runtime/switch_thread.h"
#include "src/base/job_fail_point.h"
#include "src/policy/policy_file.h"
#include "tests/support/sample_policy.h"

namespace dynamiccl {
namespace {

constexpr ControlSecret kSecret{7, 7};
constexpr ControlToken kToken{3};
constexpr int kRanks = 3;

std::vector<std::byte> PlanOf(int byte) {
  return {std::byte{1}, static_cast<std::byte>(byte)};
}

// The table of a call is named by the plan's second byte, or by one of these.
constexpr int kPolicysOwn = -1;
constexpr int kNcclsChoice = -2;

// No rank is more than this many calls ahead of the slowest.
constexpr uint64_t kRunAhead = 64;
using Progress = std::array<std::atomic<uint64_t>, kRanks>;

class SwitchingRank {
 public:
  SwitchingRank(const RendezvousPoint& rendezvous, int rank, const std::string& policy_path,
                std::shared_ptr<const Policy> policy, Progress& progress)
      : rank_(rank),
        progress_(progress),
        tables_(std::make_shared<SwitchableTables>(
            NewTable(kPolicysOwn),
            [this](const std::shared_ptr<const Policy>&, std::span<const std::byte> plan) {
              const bool readable = plan.size() == 2 && (!refuses_ || plan[1] != std::byte{66});
              return readable ? NewTable(static_cast<int>(plan[1])) : nullptr;
            })),
        thread_(policy_path, std::move(policy)) {
    thread_.Join(rendezvous, {rendezvous.root, kToken, rank, kRanks}, tables_);
  }
  ~SwitchingRank() {
    End();
    thread_.Leave(tables_);
  }

  void Begin() {
    calls_ = std::thread([this] {
      for (uint64_t call = 0; !ending_; ++call) {
        tables_->Enter(call);
        const DecisionEngine* engine = tables_->current().engine;
        had_.push_back(engine == nullptr ? kNcclsChoice : NameOf(engine));
        last_ = had_.back();
        Decide(call);
        progress_[static_cast<size_t>(rank_)] = call + 1;
        while (!ending_ && call > *std::min_element(progress_.begin(), progress_.end()) + kRunAhead)
          std::this_thread::yield();
      }
    });
  }
  void RefuseThePlanOf66() { refuses_ = true; }
  // Makes the rank's next decision differ from that of the other ranks.
  void FalsifyADecision() { falsify_ = true; }
  // Returns the table of the last call.
  int last() const { return last_; }
  SwitchThread& thread() { return thread_; }
  // Ends the calls. Returns the table of each call.
  const std::vector<int>& End() {
    ending_ = true;
    if (calls_.joinable()) calls_.join();
    return had_;
  }

 private:
  // Decides the call by its table.
  void Decide(uint64_t call) {
    CollectiveConfig config{Algorithm::kRing, Protocol::kLL, static_cast<uint8_t>(last_ & 63)};
    if (falsify_.exchange(false)) config.protocol = Protocol::kSimple;
    const DecisionKey question{Collective::kAllReduce, call % 9 * 1024};
    tables_->digest().Add(question, config, tables_->current().version);
  }

  std::shared_ptr<DecisionEngine> NewTable(int name) {
    auto table = std::make_shared<DecisionEngine>(EngineOptions{});
    const std::lock_guard lock(mutex_);
    names_[table.get()] = name;
    kept_.push_back(table);  // so that no address is used twice
    return table;
  }
  int NameOf(const DecisionEngine* engine) {
    const std::lock_guard lock(mutex_);
    return names_.at(engine);
  }

  std::mutex mutex_;
  std::map<const DecisionEngine*, int> names_;
  std::vector<std::shared_ptr<DecisionEngine>> kept_;
  const int rank_;
  Progress& progress_;
  std::atomic<int> last_{kPolicysOwn};
  std::atomic<bool> refuses_{false};
  std::atomic<bool> falsify_{false};
  std::atomic<bool> ending_{false};
  std::vector<int> had_;
  std::shared_ptr<SwitchableTables> tables_;
  SwitchThread thread_;
  std::thread calls_;
};

class TableSwitching : public ::testing::Test {
 protected:
  TableSwitching() {
    std::string folder = std::filesystem::temp_directory_path() / "dynamiccl-tables-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
    const std::string path = folder_ + "/p.dcpolicy";
    EXPECT_TRUE(WritePolicyFile(path, *test::MakePolicyThatPrefers(Algorithm::kRing, Protocol::kSimple)));
    policy_ = *ReadPolicyFile(path);
    auto leadership = std::make_unique<SwitchLeadership>(
        std::make_unique<PolicyWatch>(path, policy_->sha256), [this](const ControlToken& token) {
          SwitchThread* own = leaders_own_;
          return own == nullptr ? std::nullopt : own->CallsOf(token);
        });
    server_ = std::move(*ControlServer::Start({"127.0.0.1"}, 0, 1000, std::move(leadership)));
    server_->RegisterRoot(kToken, kSecret);
    const RendezvousPoint rendezvous{server_->address(), server_->port(), kToken, kSecret};
    for (int rank = 0; rank < kRanks; ++rank)
      ranks_.push_back(std::make_unique<SwitchingRank>(rendezvous, rank, path, policy_, progress_));
    leaders_own_ = &ranks_[0]->thread();
    for (const auto& rank : ranks_) rank->Begin();
  }
  ~TableSwitching() override {
    for (const auto& rank : ranks_) rank->End();
    server_.reset();
    ranks_.clear();
    std::filesystem::remove_all(folder_);
  }

  // Waits for the outcome. While ranks still join, the leader makes no attempt, so the offer is repeated.
  SwitchOutcome Offer(TableOffer offer) {
    while (true) {
      std::promise<SwitchOutcome> promise;
      offer.ended = [&](const SwitchOutcome& outcome) { promise.set_value(outcome); };
      EXPECT_TRUE(server_->OfferTable(kToken, offer));
      const SwitchOutcome outcome = promise.get_future().get();
      if (outcome.version != 0) return outcome;
    }
  }
  SwitchOutcome OfferPlan(int byte, SwitchReason reason = SwitchReason::kOperator) {
    return Offer({reason, false, PlanOf(byte), {}});
  }

  // Requires that all ranks had the same table at every call that all of them made. Returns the tables in
  // order, without repetitions.
  std::vector<int> TablesOfAll() {
    std::vector<std::vector<int>> had;
    for (const auto& rank : ranks_) had.push_back(rank->End());
    size_t all = SIZE_MAX;
    for (const auto& each : had) all = std::min(all, each.size());
    std::vector<int> in_order;
    for (size_t call = 0; call < all; ++call) {
      for (const auto& each : had) {
        if (each[call] == had[0][call]) continue;
        ADD_FAILURE() << "call " << call << ": " << each[call] << " and " << had[0][call];
        return in_order;
      }
      if (in_order.empty() || in_order.back() != had[0][call]) in_order.push_back(had[0][call]);
    }
    return in_order;
  }

  // Waits until all ranks use this table.
  void WaitFor(int table) const {
    for (const auto& rank : ranks_) {
      while (rank->last() != table) std::this_thread::yield();
    }
  }

  std::string folder_;
  std::shared_ptr<const Policy> policy_;
  std::atomic<SwitchThread*> leaders_own_{nullptr};
  Progress progress_{};
  std::vector<std::unique_ptr<SwitchingRank>> ranks_;
  std::unique_ptr<ControlServer> server_;
};

TEST_F(TableSwitching, OfferedTablesAreTakenUpByAllRanksAtTheSameCall) {
  std::vector<int> expected{kPolicysOwn};
  for (int plan = 1; plan <= 20; ++plan) {
    EXPECT_EQ(OfferPlan(plan).end, SwitchOutcome::End::kCommitted);
    expected.push_back(plan);
  }
  WaitFor(20);
  EXPECT_EQ(TablesOfAll(), expected);
}

TEST_F(TableSwitching, RevocationLeavesNcclAloneAndWhatIsOfferedLaterHoldsAgain) {
  EXPECT_EQ(OfferPlan(1).end, SwitchOutcome::End::kCommitted);
  EXPECT_EQ(Offer({SwitchReason::kRevocation, true, {}, {}}).end, SwitchOutcome::End::kCommitted);
  EXPECT_EQ(OfferPlan(2).end, SwitchOutcome::End::kCommitted);
  WaitFor(2);
  EXPECT_EQ(TablesOfAll(), (std::vector<int>{kPolicysOwn, 1, kNcclsChoice, 2}));
}

TEST_F(TableSwitching, PlanThatOneRankCannotReadIsUsedByNoneAndTheRankIsNamed) {
  ranks_[1]->RefuseThePlanOf66();
  EXPECT_EQ(OfferPlan(1).end, SwitchOutcome::End::kCommitted);
  const SwitchOutcome refused = OfferPlan(66);
  EXPECT_EQ(refused.end, SwitchOutcome::End::kRankCannot);
  EXPECT_EQ(refused.rank, 1);
  EXPECT_EQ(OfferPlan(2).end, SwitchOutcome::End::kCommitted);
  WaitFor(2);
  EXPECT_EQ(TablesOfAll(), (std::vector<int>{kPolicysOwn, 1, 2}));
}

// A differing decision must be noticed within seconds, at any speed of the ranks. It ends the use of tables
// for good.
TEST_F(TableSwitching, RankThatDecidesOtherwiseIsNamedAndAllGoBackToNcclsChoice) {
  EXPECT_EQ(OfferPlan(1).end, SwitchOutcome::End::kCommitted);
  ::testing::internal::CaptureStderr();
  ranks_[2]->FalsifyADecision();
  WaitFor(kNcclsChoice);
  EXPECT_EQ(TablesOfAll(), (std::vector<int>{kPolicysOwn, 1, kNcclsChoice}));
  std::promise<SwitchOutcome> promise;
  TableOffer offer{SwitchReason::kOperator, false, PlanOf(2), {}};
  offer.ended = [&](const SwitchOutcome& outcome) { promise.set_value(outcome); };
  EXPECT_TRUE(server_->OfferTable(kToken, offer));
  EXPECT_EQ(promise.get_future().get().version, 0u);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log,
              ::testing::ContainsRegex("rank 2 decided otherwise than most ranks in calls [0-9]+ to [0-9]+"));
}

// Counts the messages with digests by connection. Once per second a rank sends the leader a digest of its
// decisions.
class SentDigests {
 public:
  SentDigests() { g_send_message.store(&Count); }
  ~SentDigests() { g_send_message.store(nullptr); }
  SentDigests(const SentDigests&) = delete;
  SentDigests& operator=(const SentDigests&) = delete;

  static void WaitForOfEachRank(int digests) {
    const auto ranks_there = [&] {
      const std::lock_guard lock(mutex_);
      return std::count_if(sent_.begin(), sent_.end(),
                           [&](const auto& connection) { return connection.second >= digests; });
    };
    while (ranks_there() < kRanks) std::this_thread::yield();
  }

 private:
  static Status Count(int fd, std::span<const std::byte> bytes, SendBytes send) {
    const Status status = send(fd, bytes);
    const std::lock_guard lock(mutex_);
    if (KindOf(bytes) == ControlKind::kDigest) ++sent_[fd];
    return status;
  }

  static inline std::mutex mutex_;  // guards sent_
  static inline std::map<int, int> sent_;
};

TEST_F(TableSwitching, RanksThatDecideAlikeAreNotSuspected) {
  const SentDigests digests;
  for (int plan = 1; plan <= 3; ++plan) {
    EXPECT_EQ(OfferPlan(plan).end, SwitchOutcome::End::kCommitted);
    digests.WaitForOfEachRank(plan);
  }
  // Each rank's answer reaches the leader after the digests that the rank sent before.
  EXPECT_EQ(OfferPlan(4).end, SwitchOutcome::End::kCommitted);
  WaitFor(4);
  EXPECT_EQ(TablesOfAll(), (std::vector<int>{kPolicysOwn, 1, 2, 3, 4}));
}

TEST_F(TableSwitching, PlanBeyondWhatAMessageHoldsIsNotAskedFor) {
  EXPECT_EQ(OfferPlan(1).end, SwitchOutcome::End::kCommitted);
  std::promise<SwitchOutcome> promise;
  TableOffer offer{SwitchReason::kOperator, false, std::vector<std::byte>(kMaxPlanBytes + 1), {}};
  offer.ended = [&](const SwitchOutcome& outcome) { promise.set_value(outcome); };
  EXPECT_TRUE(server_->OfferTable(kToken, offer));
  EXPECT_EQ(promise.get_future().get().end, SwitchOutcome::End::kSuperseded);
}

}  // namespace
}  // namespace dynamiccl
