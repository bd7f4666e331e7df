// SPDX-License-Identifier: Apache-2.0
#include "studies/agents/timing/change_detector.h"

#include <ATen/ops/rand.h>
#include <ATen/ops/softmax.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "studies/agents/timing/recurrent_head.h"
#include "studies/agents/timing/simulated_timing.h"
#include "studies/agents/timing/timing_study.h"

namespace dynamiccl::agents {
namespace {

std::vector<std::unique_ptr<DetectorKind>> SimpleKinds() {
  std::vector<std::unique_ptr<DetectorKind>> kinds;
  kinds.push_back(ShippedKind());
  kinds.push_back(EarlyKind(8));
  kinds.push_back(TogetherKind(1, 32));
  kinds.push_back(CusumKind());
  kinds.push_back(WinsorisedCusumKind());
  kinds.push_back(PageHinkleyKind());
  kinds.push_back(BayesianKind());
  return kinds;
}

// Returns calls of four keys with normal noise of 2 %. From `changed` on, every transfer takes `factor` times
// as long; if `late`, ranks arrive later by the time of a transfer instead.
TimingRun PlainRun(size_t calls, size_t changed, double factor, bool late, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  TimingRun run;
  run.event = late ? TimingEvent::kStraggler : TimingEvent::kDegraded;
  run.changed = changed;
  int64_t now_ns = 1;
  for (size_t i = 0; i < calls; ++i) {
    const bool after = i >= changed;
    const double usual = 1e5 * static_cast<double>(1 + i % 4);
    const double transfer = usual * (after && !late ? factor : 1) * std::exp(0.02 * normal(random));
    const double skew = usual * (0.02 * std::abs(normal(random)) + (after && late ? 1 : 0));
    run.calls.push_back({1 + i % 4, now_ns, transfer, skew});
    now_ns += static_cast<int64_t>(transfer) + 50'000;
  }
  return run;
}

TEST(ChangeDetectors, AChangeBeyondAllNoiseIsNoticedAndNotBefore) {
  for (const auto& kind : SimpleKinds()) {
    const TimingRun run = PlainRun(1200, 600, 2, false, 3);
    const double threshold = kind->name() == "CUSUM, plain" ? 30 : kind->usual_threshold();
    const auto alarms = AlarmsOf(*kind, threshold, run);
    ASSERT_FALSE(alarms.empty()) << kind->name();
    EXPECT_GE(alarms.front().call, 600u) << kind->name();
    EXPECT_LE(alarms.front().call, 600u + 4 * 20) << kind->name();
    EXPECT_EQ(alarms.front().regime, Regime::kDegradedLink) << kind->name();
  }
}

TEST(ChangeDetectors, LateRanksAloneAreAStraggler) {
  for (const auto& kind : SimpleKinds()) {
    const double threshold = kind->name() == "CUSUM, plain" ? 30 : kind->usual_threshold();
    const auto alarms = AlarmsOf(*kind, threshold, PlainRun(1200, 600, 1, true, 4));
    ASSERT_FALSE(alarms.empty()) << kind->name();
    EXPECT_EQ(alarms.front().regime, Regime::kStraggler) << kind->name();
  }
}

// All times are multiplied by 8, as if another unit was used. The alarms must be the same.
TEST(ChangeDetectors, DoNotDependOnTheUnitOfTime) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const TimingRun run = PlainRun(800, 500, 1.5, seed % 2 == 0, seed);
    TimingRun scaled = run;
    for (TimedCall& call : scaled.calls) {
      call.transfer_ns *= 8;
      call.skew_ns *= 8;
    }
    for (const auto& kind : SimpleKinds()) {
      const auto alarms = AlarmsOf(*kind, kind->usual_threshold(), run);
      const auto again = AlarmsOf(*kind, kind->usual_threshold(), scaled);
      ASSERT_EQ(alarms.size(), again.size()) << kind->name() << " " << seed;
      for (size_t i = 0; i < alarms.size(); ++i) EXPECT_EQ(alarms[i].call, again[i].call) << kind->name();
    }
  }
}

TEST(ThresholdOf, KeepsTheRateThatWasAskedForWhereItWasSet) {
  std::mt19937_64 random(5);
  std::vector<TimingRun> quiet;
  for (int i = 0; i < 4; ++i) quiet.push_back(Modelled({}, 10'000, random));
  for (const auto& kind : SimpleKinds()) {
    const double threshold = ThresholdOf(*kind, quiet, 2);
    uint64_t alarms = 0;
    for (const TimingRun& run : quiet) alarms += AlarmsOf(*kind, threshold, run).size();
    EXPECT_LE(alarms, 2u) << kind->name();
  }
}

TEST(QuietResult, IntervalsAreThoseOfAPoissonCount) {
  // The bounds are those of Garwood's exact interval for 0 and 10 events.
  EXPECT_NEAR((QuietResult{20'000, 0}.Rate().high), 3.69, 0.3);
  EXPECT_NEAR((QuietResult{20'000, 10}.Rate().low), 4.80, 0.05);
  EXPECT_NEAR((QuietResult{20'000, 10}.Rate().high), 18.39, 0.05);
}

// In 120,000 calls, the upper bound for one alarm is 0.93 per 20,000 calls, and for two alarms 1.2.
TEST(AllowedSurely, IsTheMostWhoseUpperEndIsOne) {
  EXPECT_EQ(AllowedSurely(120'000), 1u);
  EXPECT_EQ(AllowedSurely(200'000), 3u);
  EXPECT_EQ(AllowedSurely(50'000), std::nullopt) << "even none is compatible with more than one";
  EXPECT_EQ(AllowedSurely(0), std::nullopt);
}

TEST(TogetherKind, SaysWhatEitherSaysAndSaysItOnce) {
  const TimingRun run = PlainRun(1600, 600, 1.5, false, 11);
  const auto first = [&](const DetectorKind& kind, double threshold) {
    const auto alarms = AlarmsOf(kind, threshold, run);
    return alarms.empty() ? run.calls.size() : alarms.front().call;
  };
  constexpr double kNever = 1e6;
  EXPECT_EQ(first(*TogetherKind(1, kNever), 1), first(*ShippedKind(), 1));
  EXPECT_EQ(first(*TogetherKind(kNever, 20), 1), first(*WinsorisedCusumKind(), 20));
  EXPECT_EQ(AlarmsOf(*TogetherKind(1, 20), 1, run).size(), 1u);
}

TEST(EarlyKind, SaysTheSameSooner) {
  const TimingRun run = PlainRun(1600, 600, 1.5, false, 12);
  const auto early = AlarmsOf(*EarlyKind(8), 1, run), shipped = AlarmsOf(*ShippedKind(), 1, run);
  ASSERT_EQ(early.size(), 1u);
  ASSERT_EQ(shipped.size(), 1u);
  EXPECT_LT(early.front().call, shipped.front().call);
  EXPECT_EQ(early.front().regime, shipped.front().regime);
}

TEST(EventResult, WhatIsNotNoticedCountsAsNever) {
  EventResult result;
  result.delays = {10, 20, 30, INFINITY};
  EXPECT_EQ(result.Quantile(0.5), 25);
  EXPECT_TRUE(std::isinf(result.Quantile(0.9)));
  EXPECT_EQ(result.MissedShare(), 0.25);
}

TEST(SimulatedTiming, PutsInWhatWasAskedForAndNothingBefore) {
  const TimingRun quiet = PlainRun(2000, 2000, 1, false, 6);
  std::mt19937_64 random(7);
  const TimingRun same = Resampled(quiet, {}, 2000, random);
  for (const TimingEvent event : {TimingEvent::kDegraded, TimingEvent::kCongested, TimingEvent::kStraggler}) {
    const TimingRun run = Resampled(quiet, {event, 1.5, 1000, 1}, 2000, random);
    ASSERT_EQ(run.calls.size(), 2000u);
    ASSERT_EQ(run.changed, 1000u);
    double before = 0, after = 0;
    for (size_t i = 0; i < 2000; ++i) {
      const TimedCall& call = run.calls[i];
      const TimedCall& was = same.calls[i];
      (i < 1000 ? before : after) += (call.transfer_ns + call.skew_ns) / (was.transfer_ns + was.skew_ns);
    }
    EXPECT_DOUBLE_EQ(before, 1000.0);
    EXPECT_NEAR(after / 1000, 1.5, event == TimingEvent::kStraggler ? 0.25 : 0.1) << Name(event);
  }
}

TEST(SimulatedTiming, MoreRanksArriveFurtherApartAndNeverChangeTransfers) {
  double apart[2] = {};
  for (const int ranks : {2, 16}) {
    std::mt19937_64 random(9), same(9);
    const TimingRun run = ModelledOfRanks(ranks, {}, 4000, random);
    const TimingRun one = Modelled({}, 4000, same);
    for (size_t i = 0; i < run.calls.size(); ++i) {
      ASSERT_EQ(run.calls[i].transfer_ns, one.calls[i].transfer_ns);
      apart[ranks == 16] += run.calls[i].skew_ns / run.calls[i].transfer_ns / 4000;
    }
  }
  // The mean range of 2 and of 16 normal values with deviation 0.05 is 0.056 and 0.177. Stalls add to this.
  EXPECT_NEAR(apart[0], 0.059, 0.01);
  EXPECT_NEAR(apart[1], 0.19, 0.02);
}

TEST(SimulatedTiming, OneLateRankOfManyIsWaitedFor) {
  std::mt19937_64 random(10);
  const TimingRun run = ModelledOfRanks(16, {TimingEvent::kStraggler, 2, 2000, 1}, 4000, random);
  double before = 0, after = 0;
  for (size_t i = 0; i < 4000; ++i) (i < 2000 ? before : after) += run.calls[i].skew_ns;
  EXPECT_GT(after, 3 * before);
}

TEST(RecurrentHead, StepsAsLibTorchDoesAllAtOnce) {
  HeadTraining training;
  training.iterations = 3;
  training.batch = 4;
  training.length = 32;
  std::mt19937_64 random(8);
  const std::vector<TimingRun> runs = {Modelled({}, 1000, random),
                                       Modelled({TimingEvent::kDegraded, 2, 500, 1}, 1000, random)};
  const RecurrentHead head = TrainHead(runs, training);
  const at::Tensor inputs = at::rand({1, 50, kHeadInputs});
  const at::Tensor expected = at::softmax(head.Logits(inputs).detach(), -1);
  HeadState state(head);
  for (int64_t call = 0; call < 50; ++call) {
    HeadInput input{};
    for (int64_t i = 0; i < kHeadInputs; ++i)
      input[static_cast<size_t>(i)] = inputs[0][call][i].item<float>();
    const auto shares = state.Step(input);
    for (int64_t i = 0; i < kHeadClasses; ++i)
      EXPECT_NEAR(shares[static_cast<size_t>(i)], expected[0][call][i].item<float>(), 1e-5);
  }
}

TEST(RecurrentHead, LearnsToTellAPlainChange) {
  std::vector<TimingRun> runs;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    TimingRun quiet = PlainRun(800, 800, 1, false, 100 + seed);
    quiet.event = TimingEvent::kQuiet;
    runs.push_back(quiet);
    runs.push_back(PlainRun(800, 400, 1.6, false, 200 + seed));
    runs.push_back(PlainRun(800, 400, 1, true, 300 + seed));
  }
  HeadTraining training;
  training.iterations = 60;
  training.length = 64;
  const auto kind = RecurrentKind(TrainHead(runs, training));
  const auto alarms = AlarmsOf(*kind, kind->usual_threshold(), PlainRun(800, 400, 1.6, false, 999));
  ASSERT_FALSE(alarms.empty());
  EXPECT_GE(alarms.front().call, 400u);
  EXPECT_LE(alarms.front().call, 500u);
  EXPECT_EQ(alarms.front().regime, Regime::kDegradedLink);
}

}  // namespace
}  // namespace dynamiccl::agents
