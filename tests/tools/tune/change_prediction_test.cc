// SPDX-License-Identifier: Apache-2.0
// Predicts settings for jobs whose step times follow from a formula: a call takes 0.1 ms plus 2 ms per
// megabyte.
#include "tools/tune/change_prediction.h"

#include <gmock/gmock.h>

namespace dynamiccl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kMega = 1 << 20;

double CallMs(double megabytes) {
  return 0.1 + 2 * megabytes;
}

WireOperation Call(Collective collective, int64_t megabytes) {
  return {.collective = collective, .data_type = DataType::kFloat32, .elements = megabytes * kMega / 4};
}

RecordedStep StepWith(const std::vector<WireOperation>& operations, double step_ms) {
  RecordedStep step{.ranks = 2, .ranks_per_node = 2, .operations = operations};
  step.step_ns = static_cast<int64_t>(step_ms * 1e6);
  step.issued_ns.resize(operations.size(), 0);
  for (const Collective collective :
       {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter})
    for (const int megabytes : {1, 2, 4, 8, 16, 32})
      step.times.push_back({.collective = collective,
                            .n_ranks = 2,
                            .n_nodes = 1,
                            .bytes = static_cast<uint64_t>(megabytes * kMega),
                            .us = CallMs(megabytes) * 1e3});
  return step;
}

// Four parameters of 4 MB lie in two buckets. The forward pass computes for 20 ms and the backward pass for
// 10 ms per parameter. The second bucket is reduced when all computing has ended.
WatchedRun DdpRun() {
  WatchedRun run{.reports = {{.rank = 0,
                              .ddp = DdpReport{.constructed = 1,
                                               .bucket_cap_mb = 8,
                                               .gradient_bytes = 16 * kMega,
                                               .parameters = std::vector<uint64_t>(4, 4 * kMega),
                                               .on_host = true}}}};
  run.step = StepWith({Call(Collective::kAllReduce, 8), Call(Collective::kAllReduce, 8)}, 60 + CallMs(8));
  run.step->issued_ns[1] = 20'000'000;
  return run;
}

Candidate Bucket(int megabytes) {
  return {.values = {{"ddp.bucket_cap_mb", megabytes}}};
}

TEST(ChangePrediction, OfBucketsFollowsTheLastOneThatNothingHides) {
  const auto prediction = ChangePrediction::From(DdpRun());
  ASSERT_TRUE(prediction) << prediction.error().message;
  const double own = 60 + CallMs(8);
  // Each of the four calls of 4 MB takes less than the 10 ms of computing before the next gradient.
  EXPECT_NEAR(*prediction->RatioOf(Bucket(4)), (60 + CallMs(4)) / own, 0.02);
  EXPECT_NEAR(*prediction->RatioOf(Bucket(1000)), (60 + CallMs(16)) / own, 0.02);
  EXPECT_NEAR(*prediction->RatioOf(Bucket(8)), 1, 0.001);
}

TEST(ChangePrediction, OfGradientsThatComeUnevenlyIsByTheirTimes) {
  WatchedRun run = DdpRun();
  // Each parameter has its own bucket. The first three gradients come 5 ms apart, and the last one 25 ms
  // later.
  run.reports[0].ddp->bucket_cap_mb = 4;
  run.step = StepWith(std::vector<WireOperation>(4, Call(Collective::kAllReduce, 4)), 60 + CallMs(4));
  run.step->issued_ns = {0, 5'000'000, 10'000'000, 35'000'000};
  const auto prediction = ChangePrediction::From(run);
  ASSERT_TRUE(prediction) << prediction.error().message;
  EXPECT_NEAR(*prediction->RatioOf(Bucket(8)), (60 + CallMs(8)) / (60 + CallMs(4)), 0.02);
  // The first bucket is reduced during the 25 ms of computing, so only the last gradient is exposed.
  EXPECT_NEAR(*prediction->RatioOf(Bucket(12)), (60 + CallMs(4)) / (60 + CallMs(4)), 0.02);
}

// Returns a job of FSDP2 with a root unit of 8 MB and three other units of 4 MB each. The backward pass
// gathers the three units again, but not the root.
WatchedRun ShardedRun(bool on_host, double step_ms) {
  WatchedRun run{.reports = {{.rank = 0, .fsdp2 = Fsdp2Report{.wrapped = 4, .on_host = on_host}}}};
  const auto gather = [](int64_t megabytes) { return Call(Collective::kAllGather, megabytes); };
  const auto scatter = [](int64_t megabytes) { return Call(Collective::kReduceScatter, megabytes); };
  run.step = StepWith({gather(8), gather(4), gather(4), gather(4), gather(4), gather(4), scatter(4),
                       gather(4), scatter(4), scatter(4), scatter(8)},
                      step_ms);
  return run;
}

const Candidate kKeeps{.values = {{"fsdp2.reshard_after_forward", false}}};

TEST(ChangePrediction, OfAProgramThatWaitsForEachCallCountsItsCalls) {
  const double own = 100 + 9 * CallMs(4) + 2 * CallMs(8);
  const auto prediction = ChangePrediction::From(ShardedRun(true, own));
  ASSERT_TRUE(prediction) << prediction.error().message;
  EXPECT_NEAR(*prediction->RatioOf(kKeeps), 1 - 3 * CallMs(4) / own, 0.01);
  EXPECT_NEAR(*prediction->RatioOf({.values = {{"fsdp2.backward_prefetch", 2}}}), 1, 0.001);
}

TEST(ChangePrediction, UnpackingGoesAwayWithAGather) {
  const double own = 100 + 9 * CallMs(4) + 2 * CallMs(8);
  WatchedRun run = ShardedRun(true, own);
  // The first ReduceScatter is issued at 50 ms. The next unit's gather begins 3 ms after its end.
  const int64_t unpacked = 50'000'000 + static_cast<int64_t>((CallMs(4) + 3) * 1e6);
  run.step->issued_ns = {0, 0, 0, 0, 0, 0, 50'000'000, unpacked, unpacked, unpacked, unpacked};
  const auto prediction = ChangePrediction::From(run);
  ASSERT_TRUE(prediction) << prediction.error().message;
  EXPECT_NEAR(*prediction->RatioOf(kKeeps), 1 - 3 * (CallMs(4) + 3) / own, 0.01);
}

TEST(ChangePrediction, OfCallsThatComputingHidesIsNothing) {
  const auto prediction = ChangePrediction::From(ShardedRun(false, 2000));
  ASSERT_TRUE(prediction) << prediction.error().message;
  EXPECT_NEAR(*prediction->RatioOf(kKeeps), 1, 0.01);
}

TEST(ChangePrediction, ConfigsAndUnknownSettingsHaveNone) {
  const auto prediction = ChangePrediction::From(DdpRun());
  ASSERT_TRUE(prediction);
  EXPECT_FALSE(prediction->RatioOf({.config = "ring/simple/1"}));
  EXPECT_FALSE(prediction->RatioOf({.values = {{"ddp.static_graph", true}}}));
  EXPECT_FALSE(prediction->RatioOf(kKeeps));
}

TEST(ChangePrediction, NeedsCallsThatAreTheFrameworks) {
  WatchedRun run = DdpRun();
  run.reports[0].ddp->parameters.clear();
  EXPECT_THAT(ChangePrediction::From(run).error().message, HasSubstr("share a bucket"));
  run = DdpRun();
  run.step->operations.front().elements /= 2;
  EXPECT_THAT(ChangePrediction::From(run).error().message, HasSubstr("0 % of the calls"));
  run = DdpRun();
  run.step->times.clear();
  EXPECT_THAT(ChangePrediction::From(run).error().message, HasSubstr("no times"));
}

std::vector<std::string> Names(const std::vector<Candidate>& candidates) {
  std::vector<std::string> names;
  for (const Candidate& candidate : candidates) names.push_back(candidate.Name());
  return names;
}

TEST(Forecasts, PutThePromisingFirstAndSpareWhatLosesOrIsTheSame) {
  WatchedRun run = DdpRun();
  run.on_host = true;
  CandidateList list = CandidatesFor(run);
  list.framework.push_back({.values = {{"ddp.static_graph", true}}});
  Apply(ForecastsOf(*ChangePrediction::From(DdpRun()), list.framework), list);
  EXPECT_THAT(Names(list.framework), ElementsAre("bucket_cap_mb=1", "static_graph=true"));
  EXPECT_LT(*list.framework.front().predicted, 0.92);
  EXPECT_THAT(Names(list.not_tried),
              ElementsAre("bucket_cap_mb=5", "bucket_cap_mb=1000", "bucket_cap_mb=100"));
  EXPECT_THAT(list.not_tried[1].not_tried, HasSubstr("predicted to lose 21 %, and predictions err by"));
  EXPECT_EQ(list.not_tried[2].not_tried, "it makes the same calls as bucket_cap_mb=1000");
}

CandidateList WithPrefetching() {
  return {.framework = {{.values = {{"fsdp2.forward_prefetch", 1}}},
                        {.values = {{"fsdp2.backward_prefetch", 2}}},
                        kKeeps}};
}

TEST(Forecasts, PrefetchingIsNotTriedWhereTheProgramWaitsForEachCall) {
  CandidateList list = WithPrefetching();
  Apply(ForecastsOf(*ChangePrediction::From(ShardedRun(true, 300)), list.framework), list);
  EXPECT_THAT(Names(list.framework), ElementsAre("reshard_after_forward=false"));
  EXPECT_THAT(Names(list.not_tried), ElementsAre("forward_prefetch=1", "backward_prefetch=2"));
  for (const Candidate& candidate : list.not_tried)
    EXPECT_EQ(candidate.not_tried, "it makes the same calls as default");
}

TEST(Forecasts, PrefetchingIsTriedOnAGpuAlthoughNothingIsPredictedOfIt) {
  CandidateList list = WithPrefetching();
  Apply(ForecastsOf(*ChangePrediction::From(ShardedRun(false, 2000)), list.framework), list);
  EXPECT_EQ(list.framework.size(), 3u);
}

TEST(Forecasts, ThatAnEarlierTuneMadeKeepTheirOrder) {
  WatchedRun run = DdpRun();
  run.on_host = true;
  CandidateList list = CandidatesFor(run);
  Apply({{.setting = "bucket_cap_mb=100", .ratio = 0.9, .not_tried = ""},
         {.setting = "bucket_cap_mb=7", .ratio = 0.8, .not_tried = ""},
         {.setting = "bucket_cap_mb=1", .ratio = 1.3, .not_tried = "it loses"}},
        list);
  EXPECT_THAT(Names(list.framework),
              ElementsAre("bucket_cap_mb=100", "bucket_cap_mb=1000", "bucket_cap_mb=5"));
  EXPECT_THAT(Names(list.not_tried), ElementsAre("bucket_cap_mb=1"));
}

}  // namespace
}  // namespace dynamiccl
