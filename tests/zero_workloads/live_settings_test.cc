// SPDX-License-Identifier: Apache-2.0
// Tests settings that change during a run. All ranks must change them before the same step, and no bit of the
// results may change.
#include <gmock/gmock.h>

#include <atomic>
#include <fstream>
#include <set>
#include <thread>

#include "src/base/whole_file.h"
#include "tests/zero_workloads/rank_processes.h"

namespace dynamiccl::zero {
namespace {

using Arguments = std::vector<std::string>;

const Arguments kSteps = {"--steps", "60"};

Arguments Joined(Arguments arguments, const Arguments& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

// Writes live values to a file, one after another, while a run continues.
class ChangingValues {
 public:
  ChangingValues() {
    Write(0);
    thread_ = std::thread([this] {
      for (int64_t turn = 1; !ending_; ++turn) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        Write(turn);
      }
    });
  }
  ~ChangingValues() {
    ending_ = true;
    thread_.join();
  }
  std::map<std::string, std::string> Environment() const {
    return {{"LD_PRELOAD", DYNAMICCL_TEST_PRELOAD},
            {"DYNAMICCL_MODE", "adaptive"},
            {"DYNAMICCL_TIMES", "0"},
            {"DYNAMICCL_CONTROL_ADDRESS", "127.0.0.1"},
            {"DYNAMICCL_ATTEST_TIMEOUT_MS", "120000"},
            {"DYNAMICCL_VALUES", path_},
            {"HOSTCCL_SUM", "rank_order"}};
  }

 private:
  void Write(int64_t turn) const {
    constexpr int64_t kBytes[] = {20'000, 1 << 20, 4'000, 100'000};
    EXPECT_TRUE(
        ReplaceFile(path_, fmt::format("bucket_bytes={}\nprefetch={}\n", kBytes[turn % 4], turn % 5)));
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "values";
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

// Returns the number of different bucket sizes or prefetch windows in the report's `settings`.
size_t Different(const std::vector<int64_t>& settings) {
  return std::set<int64_t>(settings.begin(), settings.end()).size();
}

void ExpectEqualWhileSettingsChange(int ranks, const Arguments& arguments) {
  const TrainingReport reference =
      TrainSmall(ranks, Joined(arguments, kSteps), {{"HOSTCCL_SUM", "rank_order"}});
  const ChangingValues values;
  const TrainingReport report =
      TrainSmall(ranks, Joined(arguments, Joined(kSteps, {"--live"})), values.Environment());
  EXPECT_EQ(report.losses, reference.losses) << arguments[1] << " on " << ranks;
  EXPECT_EQ(report.parameters_sha256, reference.parameters_sha256) << arguments[1] << " on " << ranks;
  ASSERT_EQ(report.live_bucket_bytes.size(), 60u);
  EXPECT_GT(Different(report.live_bucket_bytes), 1u) << "nothing changed";
  EXPECT_GT(Different(report.live_prefetch), 1u) << "the prefetch window stayed";
}

TEST(LiveSettings, ChangeNoBitOfLossesAndParameters) {
  for (const char* stage : {"0", "1", "2", "3"}) ExpectEqualWhileSettingsChange(2, {"--stage", stage});
  ExpectEqualWhileSettingsChange(3, {"--stage", "3"});
}

TEST(LiveSettings, ChangeBetweenStepsOfSeveralMicroSteps) {
  ExpectEqualWhileSettingsChange(2, {"--stage", "2", "--micro-steps", "2"});
}

TEST(LiveSettings, AreTheOptionsWithoutDynamiccl) {
  const TrainingReport report = TrainSmall(2, {"--stage", "2", "--steps", "5", "--live"}, {});
  EXPECT_THAT(report.live_bucket_bytes, ::testing::Each(report.live_bucket_bytes.at(0)));
  EXPECT_THAT(report.live_prefetch, ::testing::Each(1));
}

TEST(LiveSettings, ChangeNothingOfParametersAsUnits) {
  Launch launch{1, SmallModel(), {}};
  launch.arguments.insert(launch.arguments.end(), {"--live", "--unit", "parameter"});
  const std::vector<RankOutcome> ranks = RunRanks(launch);
  EXPECT_NE(ranks[0].exit_code, 0);
  EXPECT_THAT(ranks[0].output, ::testing::HasSubstr("--live changes buckets"));
}

}  // namespace
}  // namespace dynamiccl::zero
