// SPDX-License-Identifier: Apache-2.0
#include "studies/agents/timing/real_change.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace dynamiccl::agents {
namespace {

// Returns calls of three keys with noise of 5 %. From `changed` on, transfers take `factor` times as long,
// and the wait for late ranks is `skew` times a transfer.
TimingRun RunThatChanges(size_t calls, size_t changed, double factor, double skew = 0) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal(0, 0.05);
  TimingRun run;
  for (size_t i = 0; i < calls; ++i) {
    const double usual = 1e5 * static_cast<double>(1 + i % 3);
    const double transfer = usual * std::exp(normal(random)) * (i < changed ? 1 : factor);
    run.calls.push_back(
        {1 + i % 3, static_cast<int64_t>(i) * 1'000'000, transfer, i < changed ? 0 : skew * usual});
  }
  return run;
}

TEST(RealChange, IsWhereTimesStayOthers) {
  for (const double factor : {1.25, 0.8}) {
    const TimingRun run = RunThatChanges(2000, 1000, factor);
    EXPECT_TRUE(ReallyChanged(run, 1040)) << factor;
    EXPECT_TRUE(ReallyChanged(run, 1190)) << "noticed late";
    EXPECT_FALSE(ReallyChanged(run, 700)) << factor;
    EXPECT_FALSE(ReallyChanged(run, 1500)) << "by then it is what was before";
  }
  EXPECT_TRUE(ReallyChanged(RunThatChanges(2000, 1000, 1, 0.5), 1040)) << "ranks that come late";
}

TEST(RealChange, IsNotWhatDetectorsNeedNotReportNorWhatHasPassed) {
  EXPECT_FALSE(ReallyChanged(RunThatChanges(2000, 1000, 1.03), 1040));
  TimingRun burst = RunThatChanges(2000, 2000, 1);
  for (size_t i = 1000; i < 1040; ++i) burst.calls[i].transfer_ns *= 3;
  EXPECT_FALSE(ReallyChanged(burst, 1040)) << "over when it was noticed";
}

TEST(RealChange, NeedsNoFullSpansAtTheEnds) {
  const TimingRun run = RunThatChanges(300, 100, 2);
  EXPECT_TRUE(ReallyChanged(run, 140));
  EXPECT_TRUE(ReallyChanged(run, 299));
  EXPECT_FALSE(ReallyChanged(run, 0)) << "nothing is known";
  EXPECT_FALSE(ReallyChanged(TimingRun{}, 0));
}

TEST(RealChange, QuietRunsHaveNone) {
  EXPECT_EQ(ShareReallyChanged(RunThatChanges(3000, 3000, 1)), 0);
  EXPECT_NEAR(ShareReallyChanged(RunThatChanges(2000, 1000, 2)), 0.2, 0.06)
      << "places within 400 calls of the change";
}

}  // namespace
}  // namespace dynamiccl::agents
