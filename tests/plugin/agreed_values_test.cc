// SPDX-License-Identifier: Apache-2.0
// Tests live values over real sockets. Ranks are threads. Each reads a value at the start of each step and
// then issues calls as fast as it can, while values and tables are proposed at random. All ranks must have
// read the same value in each step.
#include <gmock/gmock.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <random>
#include <thread>

#include "plugin/runtime/control_server.h"
#include "plugin/runtime/switch_thread.h"

namespace dynamiccl {
namespace {

constexpr ControlSecret kSecret{7, 7};
constexpr ControlToken kToken{3};
constexpr int kRanks = 4;
constexpr int64_t kOwnNumber = -1;  // the program's value until one is agreed
// Values that count rounds, one for each rank. A connection keeps the order of a rank's proposals. So when
// this value has arrived, all earlier proposals of the rank have arrived too.
constexpr const char* kRoundOfRank[kRanks] = {"round0", "round1", "round2", "round3"};

// No rank is more than this many steps ahead of the slowest. Ranks that nobody waits for do not count.
constexpr uint64_t kRunAhead = 20;
class Progress {
 public:
  std::atomic<uint64_t>& of(size_t rank) { return steps_[rank]; }
  void WaitForNobody(size_t rank, bool apart) { apart_[rank] = apart; }
  bool MayBegin(uint64_t step) const {
    for (size_t rank = 0; rank < kRanks; ++rank) {
      if (!apart_[rank] && step > steps_[rank] + kRunAhead) return false;
    }
    return true;
  }

 private:
  std::array<std::atomic<uint64_t>, kRanks> steps_{};
  std::array<std::atomic<bool>, kRanks> apart_{};
};

// What a rank saw in a step: the two values that it read before the calls, and the table version of each
// call.
struct Step {
  int64_t bucket = 0;
  int64_t window = 0;
  std::vector<uint32_t> tables;
  friend bool operator==(const Step&, const Step&) = default;
};

void PrintTo(const Step& step, std::ostream* out) {
  *out << step.bucket << "/" << step.window << ", tables " << ::testing::PrintToString(step.tables);
}

std::shared_ptr<DecisionEngine> NewTable(const std::shared_ptr<const Policy>&, std::span<const std::byte>) {
  return std::make_shared<DecisionEngine>(EngineOptions{});
}

class ReadingRank {
 public:
  ReadingRank(const RendezvousPoint& rendezvous, int rank, Progress& progress)
      : progress_(progress),
        rank_(static_cast<size_t>(rank)),
        tables_(std::make_shared<SwitchableTables>(NewTable(nullptr, {}), NewTable)),
        thread_(std::make_unique<SwitchThread>("", nullptr)) {
    thread_->Join(rendezvous, {rendezvous.root, kToken, rank, kRanks}, tables_);
  }
  ~ReadingRank() {
    End();
    if (thread_) thread_->Leave(tables_);
  }

  void Begin() {
    program_ = std::thread([this] {
      while (!ending_) RunStep();
    });
  }
  bool Propose(const std::string& name, int64_t value) { return thread_->Propose(kToken, {name, value}); }
  // Ends the rank's process: its connection breaks, and it makes no more calls.
  void Die() {
    progress_.WaitForNobody(rank_, true);
    End();
    tables_->gate().Release();
    thread_.reset();
  }
  // Stops the program before its next step, but not the rank's control thread.
  void HoldUp(bool held) {
    progress_.WaitForNobody(rank_, held);
    held_ = held;
  }
  // The bucket size that the last step read, and the round whose proposals from all ranks had reached the
  // leader by then.
  int64_t bucket() const { return bucket_; }
  int64_t round() const { return round_; }
  uint64_t steps() const { return progress_.of(rank_); }
  std::optional<uint64_t> calls() const { return thread_ ? thread_->CallsOf(kToken) : std::nullopt; }
  const std::vector<Step>& End() {
    ending_ = true;
    if (program_.joinable()) program_.join();
    return steps_;
  }

 private:
  int64_t Read(const char* name) {
    tables_->Enter(next_call_);
    const AgreedValues* values = tables_->values();
    if (values == nullptr || !values->contains(name)) return kOwnNumber;
    return values->find(name)->second;
  }

  // Runs a step of 1 to 5 calls. The number is the same on all ranks.
  void RunStep() {
    while (held_ && !ending_) std::this_thread::yield();
    Step step{Read("bucket"), Read("window"), {}};
    for (size_t call = 0; call <= steps_.size() * 7 % 5; ++call) {
      tables_->Enter(next_call_++);
      step.tables.push_back(tables_->current().version);
    }
    bucket_ = step.bucket;
    int64_t round = INT64_MAX;
    for (const char* name : kRoundOfRank) round = std::min(round, Read(name));
    round_ = round;
    steps_.push_back(std::move(step));
    progress_.of(rank_) = steps_.size();
    while (!ending_ && !progress_.MayBegin(steps_.size())) std::this_thread::yield();
  }

  Progress& progress_;
  const size_t rank_;
  std::atomic<int64_t> bucket_{kOwnNumber};
  std::atomic<int64_t> round_{kOwnNumber};
  std::atomic<bool> held_{false};
  std::atomic<bool> ending_{false};
  uint64_t next_call_ = 0;
  std::vector<Step> steps_;
  std::shared_ptr<SwitchableTables> tables_;
  std::unique_ptr<SwitchThread> thread_;
  std::thread program_;
};

class AgreedValuesOfRanks : public ::testing::Test {
 protected:
  AgreedValuesOfRanks() {
    std::string folder = std::filesystem::temp_directory_path() / "dynamiccl-values-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
  }
  ~AgreedValuesOfRanks() override {
    for (const auto& rank : ranks_) rank->End();
    server_.reset();
    ranks_.clear();
    std::filesystem::remove_all(folder_);
  }

  std::string ValuesFile() const { return folder_ + "/values"; }
  void WriteValues(const std::string& text) const {
    std::ofstream(ValuesFile() + ".new") << text;
    std::filesystem::rename(ValuesFile() + ".new", ValuesFile());
  }

  void Begin() {
    auto leadership = std::make_unique<SwitchLeadership>(
        std::make_unique<PolicyWatch>("", Sha256Digest{}),
        [this](const ControlToken&) { return calls_are_known_ ? ranks_[0]->calls() : std::nullopt; }, nullptr,
        "", ValuesFile());
    server_ = std::move(*ControlServer::Start({"127.0.0.1"}, 0, 1000, std::move(leadership)));
    server_->RegisterRoot(kToken, kSecret);
    const RendezvousPoint rendezvous{server_->address(), server_->port(), kToken, kSecret};
    for (int rank = 0; rank < kRanks; ++rank)
      ranks_.push_back(std::make_unique<ReadingRank>(rendezvous, rank, progress_));
    calls_are_known_ = true;
    for (const auto& rank : ranks_) rank->Begin();
  }

  // Requires that in every step that all ranks made, they read the same and had the same tables. Returns the
  // different bucket sizes in order.
  std::vector<int64_t> BucketsOfAll(size_t n_ranks = kRanks) {
    std::vector<std::vector<Step>> had;
    for (size_t rank = 0; rank < n_ranks; ++rank) had.push_back(ranks_[rank]->End());
    size_t all = SIZE_MAX;
    for (const auto& each : had) all = std::min(all, each.size());
    std::vector<int64_t> in_order;
    for (size_t step = 0; step < all; ++step) {
      for (size_t rank = 1; rank < n_ranks; ++rank) {
        EXPECT_EQ(had[rank][step], had[0][step]) << "rank " << rank << ", step " << step;
        if (had[rank][step] != had[0][step]) return in_order;
      }
      const int64_t bucket = had[0][step].bucket;
      if (in_order.empty() || in_order.back() != bucket) in_order.push_back(bucket);
    }
    return in_order;
  }

  // Waits until each of the first `n_ranks` ranks has read this bucket size.
  void WaitFor(int64_t bucket, size_t n_ranks = kRanks) const {
    for (size_t rank = 0; rank < n_ranks; ++rank) {
      while (ranks_[rank]->bucket() != bucket) std::this_thread::yield();
    }
  }

  void OfferPlan(int byte) {
    server_->OfferTable(kToken, {SwitchReason::kOperator, false, {static_cast<std::byte>(byte)}, {}});
  }

  // Random ranks propose values, and the leader offers tables, at random times. At the end all ranks agree on
  // the number of the round.
  void ProposeARound(int64_t round, std::minstd_rand& random) {
    for (int i = 0; i < 8; ++i) {
      const size_t rank = random() % kRanks;
      EXPECT_TRUE(ranks_[rank]->Propose(random() % 3 == 0 ? "window" : "bucket", i));
      if (random() % 3 == 0) OfferPlan(i);
      const uint64_t wait_for = ranks_[0]->steps() + random() % 200;
      while (ranks_[0]->steps() < wait_for) std::this_thread::yield();
    }
    for (size_t rank = 0; rank < kRanks; ++rank) ranks_[rank]->Propose(kRoundOfRank[rank], round);
    while (ranks_[0]->round() != round) std::this_thread::yield();
    ranks_[random() % kRanks]->Propose("bucket", 1000 + round);
    WaitFor(1000 + round);
  }

  std::string folder_;
  std::atomic<bool> calls_are_known_{false};
  Progress progress_{};
  std::vector<std::unique_ptr<ReadingRank>> ranks_;
  std::unique_ptr<ControlServer> server_;
};

class AgreedValuesBySeed : public AgreedValuesOfRanks, public ::testing::WithParamInterface<unsigned> {};

TEST_P(AgreedValuesBySeed, AllRanksReadTheSameInEachStep) {
  Begin();
  std::minstd_rand random(GetParam());
  for (int64_t round = 1; round <= 3; ++round) ProposeARound(round, random);
  const std::vector<int64_t> buckets = BucketsOfAll();
  EXPECT_EQ(buckets.front(), kOwnNumber);
  EXPECT_EQ(buckets.back(), 1003);
}

INSTANTIATE_TEST_SUITE_P(Seeds, AgreedValuesBySeed, ::testing::Range(1u, 6u));

TEST_F(AgreedValuesOfRanks, TableKeepsTheValuesAndValuesKeepTheTable) {
  Begin();
  const auto offered = [this](TableOffer offer) {
    std::promise<SwitchOutcome> promise;
    offer.ended = [&](const SwitchOutcome& outcome) { promise.set_value(outcome); };
    server_->OfferTable(kToken, offer);
    return promise.get_future().get();
  };
  ranks_[2]->Propose("bucket", 5);
  WaitFor(5);
  const uint32_t table = offered({SwitchReason::kOperator, false, {std::byte{1}}, {}}).version;
  ranks_[1]->Propose("window", 3);
  ranks_[3]->Propose("bucket", 6);
  WaitFor(6);
  const std::vector<Step>& steps = ranks_[0]->End();
  EXPECT_EQ(steps.back().tables.back(), table) << "values are no table of their own";
  EXPECT_EQ(BucketsOfAll(), (std::vector<int64_t>{kOwnNumber, 5, 6}));
  const auto had_both = std::find_if(steps.begin(), steps.end(), [&](const Step& step) {
    return step.bucket == 5 && step.tables.back() == table;
  });
  EXPECT_NE(had_both, steps.end()) << "the table did not keep the value";
}

// The late rank's calls wait for nobody, so the other ranks change first. It must read the same in the same
// step.
TEST_F(AgreedValuesOfRanks, LateRankReadsTheSameInTheSameStep) {
  Begin();
  ranks_[0]->Propose("bucket", 1);
  WaitFor(1);
  ranks_[3]->HoldUp(true);
  ranks_[1]->Propose("bucket", 2);
  WaitFor(2, 3);
  ranks_[3]->HoldUp(false);
  WaitFor(2);
  EXPECT_EQ(BucketsOfAll(), (std::vector<int64_t>{kOwnNumber, 1, 2}));
}

TEST_F(AgreedValuesOfRanks, AfterARankDiedValuesStayAndNobodyWaits) {
  Begin();
  ranks_[0]->Propose("bucket", 1);
  WaitFor(1);
  ranks_[1]->Propose("bucket", 2);  // under way when the rank dies
  ranks_[3]->Die();
  for (int value = 3; value < 10; ++value) ranks_[2]->Propose("bucket", value);
  const uint64_t later = ranks_[0]->steps() + 2000;
  for (size_t rank = 0; rank < 3; ++rank) {
    while (ranks_[rank]->steps() < later) std::this_thread::yield();
  }
  EXPECT_LE(BucketsOfAll(3).back(), 2) << "a value was agreed without a rank";
}

TEST_F(AgreedValuesOfRanks, MoreNamesThanThereMayBeChangeNothing) {
  Begin();
  ranks_[0]->Propose("bucket", 1);
  WaitFor(1);
  for (size_t i = 1; i < kMaxAgreedValues; ++i) ranks_[0]->Propose("v" + std::to_string(i), 1);
  ranks_[0]->Propose("window", 1);
  ranks_[0]->Propose("bucket", 2);
  WaitFor(2);
  EXPECT_EQ(BucketsOfAll(), (std::vector<int64_t>{kOwnNumber, 1, 2}));
  EXPECT_EQ(ranks_[0]->End().back().window, kOwnNumber);
}

TEST_F(AgreedValuesOfRanks, FileOfValuesIsTakenUpByAll) {
  WriteValues("bucket=4\n");
  Begin();
  WaitFor(4);
  ranks_[1]->Propose("bucket", 5);
  WaitFor(5);
  WriteValues("bucket=6\nwindow=1\n");
  WaitFor(6);
  EXPECT_EQ(BucketsOfAll(), (std::vector<int64_t>{kOwnNumber, 4, 5, 6}));
  EXPECT_EQ(ranks_[0]->End().back().window, 1);
}

TEST_F(AgreedValuesOfRanks, FileTellsOnlyWhatIsNewAndAWrongOneNothing) {
  WatchedValues watched(ValuesFile());
  EXPECT_EQ(watched.Changes(), AgreedValues{}) << "there is no file";
  WriteValues("bucket=4\nwindow=1\n");
  EXPECT_EQ(watched.Changes(), (AgreedValues{{"bucket", 4}, {"window", 1}}));
  EXPECT_EQ(watched.Changes(), AgreedValues{});
  WriteValues("bucket=4\nwindow=2\n");
  EXPECT_EQ(watched.Changes(), (AgreedValues{{"window", 2}}));
  ::testing::internal::CaptureStderr();
  WriteValues("bucket=5\nwindow=two\n");
  EXPECT_EQ(watched.Changes(), AgreedValues{});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::HasSubstr(ValuesFile() + ":2: 'two'"));
  EXPECT_EQ(watched.values(), (AgreedValues{{"bucket", 4}, {"window", 2}}));
}

}  // namespace
}  // namespace dynamiccl
