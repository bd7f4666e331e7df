// SPDX-License-Identifier: Apache-2.0
// Tests the estimated effects of configs, on steps whose true effects are known.
#include "src/decision/guard/step_regression.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "src/decision/guard/key_search.h"

namespace dynamiccl {
namespace {

constexpr size_t kBlock = 16;

// Generates steps. Every step uses each of `configs` configs with probability `share`.
class Steps {
 public:
  Steps(uint64_t seed, std::vector<double> effects, double noise)
      : random_(seed), effects_(std::move(effects)), noise_(noise) {
    for (size_t i = 0; i < effects_.size(); ++i) regression_.AddConfig();
  }
  double share = 0.2;
  // Is added to the log of a step's time. The argument is the step's number.
  std::function<double(int)> disturbance = [](int) { return 0.0; };

  void Run(int blocks) {
    for (; blocks > 0; --blocks) {
      std::vector<StepRow> rows;
      for (size_t i = 0; i < kBlock; ++i) rows.push_back(Step());
      regression_.TakeBlock(rows);
    }
  }
  const StepRegression& regression() const { return regression_; }

 private:
  StepRow Step() {
    std::normal_distribution<double> normal(0, noise_);
    StepRow row{{}, std::log(2e7) + normal(random_) + disturbance(step_++), false};
    for (size_t i = 0; i < effects_.size(); ++i) {
      if (std::uniform_real_distribution(0.0, 1.0)(random_) >= share) continue;
      row.configs.push_back(static_cast<int>(i));
      row.log_time += effects_[i];
    }
    return row;
  }

  std::mt19937_64 random_;
  std::vector<double> effects_;
  double noise_;
  int step_ = 0;
  StepRegression regression_;
};

TEST(StepRegression, FindsManyEffectsAtOnce) {
  const std::vector<double> truth = {-0.3, 0.2, 0, -0.02, 0.05, -0.1};
  Steps steps(1, truth, 0.02);
  steps.Run(50);
  for (size_t i = 0; i < truth.size(); ++i) {
    const StepEffect effect = steps.regression().Over(static_cast<int>(i), -1);
    EXPECT_NEAR(effect.mean, truth[i], 0.006) << i;
    EXPECT_LT(effect.error, 0.004) << i;
  }
  EXPECT_NEAR(steps.regression().Over(0, 3).mean, -0.28, 0.008) << "one over the other";
  EXPECT_NEAR(steps.regression().noise(), 0.02, 0.005);
}

// Returns how many of 1,000 jobs without any effect take one of 12 configs for faster after some block, by
// the limit that adoptions use.
int WrongJobs(const std::function<double(int)>& disturbance) {
  int wrong = 0;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    Steps steps(seed, std::vector<double>(12, 0.0), 0.03);
    steps.share = 0.06;
    steps.disturbance = disturbance;
    bool passes = false;
    for (int block = 0; block < 25; ++block) {
      steps.Run(1);
      for (int i = 0; i < 12; ++i) {
        const StepEffect effect = steps.regression().Over(i, -1);
        passes |= IsSurelyFaster({effect, steps.regression().steps(i), steps.regression().blocks(i)});
      }
    }
    wrong += passes ? 1 : 0;
  }
  return wrong;
}

TEST(StepRegression, NothingPassesForFasterInDriftBurstsAndTails) {
  EXPECT_EQ(WrongJobs([](int) { return 0.0; }), 0) << "quiet";
  EXPECT_EQ(WrongJobs([](int step) { return 0.1 * std::sin(step / 40.0); }), 0) << "drift";
  EXPECT_EQ(WrongJobs([](int step) { return step / 8 % 12 == 0 ? 0.4 : 0.0; }), 0) << "bursts";
  std::mt19937_64 random(7);
  const auto rare = [&](int) { return std::uniform_real_distribution(0.0, 1.0)(random) < 0.03 ? 1.0 : 0.0; };
  EXPECT_LE(WrongJobs(rare), 1) << "tails";
}

TEST(StepRegression, AShortBlockSaysNothing) {
  StepRegression regression;
  ASSERT_EQ(regression.AddConfig(), 0);
  const std::vector<StepRow> rows(StepRegression::kLeastBlock - 1, StepRow{{0}, 17, false});
  regression.TakeBlock(rows);
  EXPECT_EQ(regression.steps(0), 0u);
  EXPECT_EQ(regression.Over(0, -1).mean, 0);
}

// The first use of a config sets up its connections, which may take as long as ten steps.
TEST(StepRegression, AFirstUseIsNoEffect) {
  StepRegression regression;
  ASSERT_EQ(regression.AddConfig(), 0);
  std::vector<StepRow> rows(kBlock, StepRow{{}, 17, false});
  rows[3] = {{0}, 19, true};
  regression.TakeBlock(rows);
  EXPECT_LT(regression.Over(0, -1).mean, 0.2);
}

TEST(StepRegression, ANumberCanStandForAnotherConfig) {
  Steps steps(3, {-0.3, 0.1}, 0.02);
  steps.Run(10);
  StepRegression regression = steps.regression();
  regression.Forget(0);
  EXPECT_EQ(regression.steps(0), 0u);
  EXPECT_EQ(regression.Over(0, -1).mean, 0);
  EXPECT_NEAR(regression.Over(1, -1).mean, 0.1, 0.05);
}

TEST(StepRegression, HasRoomForSoManyConfigs) {
  StepRegression regression;
  for (int i = 0; i < StepRegression::kMaxConfigs; ++i) ASSERT_EQ(regression.AddConfig(), i);
  EXPECT_EQ(regression.AddConfig(), -1);
}

}  // namespace
}  // namespace dynamiccl
