// SPDX-License-Identifier: Apache-2.0
#include "tools/canary/traffic.h"

#include <gtest/gtest.h>

#include "tests/traces/any_trace.h"
#include "tools/canary/comparison.h"

namespace dynamiccl {
namespace {

constexpr uint64_t kMiB = 1 << 20;

// The job has four AllReduces of one bucket size, one of another size in the same class, a gather and a Send.
SectionBuilder Job() {
  SectionBuilder builder(0, 16);
  for (uint64_t call = 0; call < 4; ++call) builder.Call(call, Collective::kAllReduce, 4 * kMiB);
  builder.Call(4, Collective::kAllReduce, 4 * kMiB + 6);
  builder.Call(5, Collective::kAllGather, 1002);
  builder.Call(6, Collective::kSend, 64 * kMiB);
  return builder;
}

Trace TraceOf(SectionBuilder builder) {
  Trace trace;
  trace.sections.push_back(std::move(builder.section()));
  return trace;
}

TEST(Traffic, IsTheCallsByCollectiveAndSizeClass) {
  const auto traffic = TrafficOf(TraceOf(Job()), 0);
  ASSERT_TRUE(traffic) << traffic.error().message;
  EXPECT_EQ(traffic->ranks, 16);
  EXPECT_EQ(traffic->nodes, 1);
  ASSERT_EQ(traffic->classes.size(), 2u);
  EXPECT_EQ(traffic->classes[0], (TrafficClass{Collective::kAllReduce, 4 * kMiB, 5, 5 * 4 * kMiB + 6}))
      << "the size with most calls";
  EXPECT_EQ(traffic->classes[1], (TrafficClass{Collective::kAllGather, 1024, 1, 1002}))
      << "whole floats a rank";
  EXPECT_EQ(traffic->calls, 6u);
  EXPECT_EQ(traffic->calls_without_choice, 1u);
  EXPECT_EQ(SizesOf(*traffic), (std::vector<uint64_t>{1024, 4 * kMiB}));
}

TEST(Traffic, OfCommunicatorsOfAnotherSizeIsNamed) {
  SectionBuilder builder = Job();
  builder.Add(CommunicatorRecord(1, {.id = 0xdef, .rank = 0, .n_ranks = 4, .n_nodes = 2}, 0));
  IssuedCall small;
  small.call.bytes = 4096;
  for (uint64_t call = 0; call < 3; ++call) {
    small.call.call_number = call;
    builder.Add(CallRecord(1, small));
  }
  const Trace trace = TraceOf(std::move(builder));
  const auto large = TrafficOf(trace, 0);
  ASSERT_TRUE(large);
  EXPECT_EQ(large->other_communicators, std::vector<std::string>{"1 of 4 ranks, 3 calls"});
  const auto other = TrafficOf(trace, 4);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->calls, 3u);
  EXPECT_EQ(other->nodes, 2);
  const auto none = TrafficOf(trace, 8);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("no collectives among 8 ranks"), std::string::npos);
  EXPECT_NE(none.error().message.find("1 of 16 ranks"), std::string::npos) << none.error().message;
  EXPECT_FALSE(TrafficOf(Trace{}, 0));
}

TEST(Traffic, OfManySizesKeepsThoseWithMostBytes) {
  SectionBuilder builder(0, 2);
  for (uint64_t i = 0; i < 20; ++i) builder.Call(i, Collective::kReduceScatter, uint64_t{1024} << i);
  const auto traffic = TrafficOf(TraceOf(std::move(builder)), 0);
  ASSERT_TRUE(traffic);
  EXPECT_EQ(traffic->classes.size(), kMaxClasses);
  EXPECT_EQ(traffic->classes.front().bytes, uint64_t{1024} << 19);
  EXPECT_EQ(traffic->calls_left_out, 20 - kMaxClasses);
}

constexpr CollectiveConfig kRing{Algorithm::kRing, Protocol::kSimple, 8};
constexpr CollectiveConfig kTree{Algorithm::kTree, Protocol::kSimple, 8};

// Returns a release's cell that chooses `config` at both sizes of Job. The two times are its prices of ring
// and tree at the larger size.
Cell Chooses(const CollectiveConfig& config, float ring_us, float tree_us) {
  Cell cell;
  cell.end = CellEnd::kPassed;
  for (const auto& [collective, bytes, share] : {std::tuple{Collective::kAllReduce, 4 * kMiB, 1.0F},
                                                 std::tuple{Collective::kAllGather, uint64_t{1024}, 0.01F},
                                                 std::tuple{Collective::kBroadcast, 4 * kMiB, 1.0F}}) {
    CellChoice choice{.collective = collective, .bytes = bytes, .config = config, .costs = {}};
    choice.costs[{Algorithm::kRing, Protocol::kSimple}] = share * ring_us;
    choice.costs[{Algorithm::kTree, Protocol::kSimple}] = share * tree_us;
    cell.choices.push_back(choice);
  }
  return cell;
}

TEST(TrafficEffect, PricesBothChoicesByEachTable) {
  const auto traffic = TrafficOf(TraceOf(Job()), 0);
  ASSERT_TRUE(traffic);
  const TrafficEffect effect = EffectOn(*traffic, Chooses(kRing, 100, 150), Chooses(kTree, 40, 20));
  EXPECT_NEAR(effect.by_before, 1.5, 1e-6);
  EXPECT_NEAR(effect.by_after, 0.5, 1e-6);
  EXPECT_EQ(effect.calls, 6u);
  EXPECT_EQ(effect.calls_with_other_pair, 6u);
  EXPECT_NEAR(effect.own_us_before, 501, 1e-3) << "five of 100 us and one of 1 us";
  EXPECT_NEAR(effect.own_us_after, 100.2, 1e-3);
  const TrafficEffect none = EffectOn(*traffic, Chooses(kRing, 100, 150), Chooses(kRing, 40, 20));
  EXPECT_EQ(none.by_before, 1);
  EXPECT_EQ(none.calls_with_other_pair + none.calls_with_other_channels, 0u);
  CollectiveConfig narrow = kRing;
  narrow.channels = 2;
  const TrafficEffect channels = EffectOn(*traffic, Chooses(kRing, 100, 150), Chooses(narrow, 700, 900));
  EXPECT_EQ(channels.calls_with_other_pair, 0u);
  EXPECT_EQ(channels.calls_with_other_channels, 6u);
  EXPECT_EQ(channels.by_after, 1);
  EXPECT_NEAR(channels.own_us_after / channels.own_us_before, 7, 1e-6);
}

TEST(TrafficEffect, LeavesOutWhatATableDoesNotPrice) {
  const auto traffic = TrafficOf(TraceOf(Job()), 0);
  ASSERT_TRUE(traffic);
  Cell after = Chooses(kTree, 40, 20);
  after.choices[0].costs.clear();
  const TrafficEffect effect = EffectOn(*traffic, Chooses(kRing, 100, 150), after);
  EXPECT_EQ(effect.calls, 6u);
  EXPECT_EQ(effect.calls_unpriced, 5u);
  EXPECT_EQ(effect.calls_with_other_pair, 6u);
  after.choices.clear();
  EXPECT_EQ(EffectOn(*traffic, Chooses(kRing, 100, 150), after).calls_unknown, 6u);
}

// ---- priced by one model ----

constexpr uint64_t kGiB = 1 << 30;

// Returns a trace of three steps of 100 ms. In each, an AllReduce of 1 GiB takes 40 ms and one of 64 bytes
// takes 10 ms.
Trace TimedJob() {
  SectionBuilder builder(0, 16);
  for (uint64_t step = 0; step < 3; ++step) {
    builder.Add(StepRecord({0, step, Phase::kUnknown, ZeroStage::kUnknown}));
    for (const auto& [bytes, ms] : {std::pair{kGiB, 40}, std::pair{uint64_t{64}, 10}}) {
      IssuedCall issued;
      issued.call.collective = Collective::kAllReduce;
      issued.call.call_number = 2 * step + (bytes == kGiB ? 0 : 1);
      issued.call.bytes = bytes;
      issued.coverage = Coverage::kTunable;
      TraceRecord record = CallRecord(0, issued);
      record.duration_ns = static_cast<uint32_t>(ms) * 1'000'000;
      record.duration_source = static_cast<uint8_t>(DurationSource::kStream);
      builder.Add(record);
    }
  }
  for (size_t i = 0; i < builder.section().records.size(); ++i) {
    TraceRecord& record = builder.section().records[i];
    if (i > 0) record.issued_ns = static_cast<int64_t>((i - 1) / 3 * 100'000'000 + i);
    Seal(record);
  }
  return TraceOf(std::move(builder));
}

// Returns a cell of two nodes with eight ranks each, whose channels carry `gbps` each between the nodes. It
// chooses `large` for large calls and `small` for small ones.
Cell OnGraphs(double gbps, const CollectiveConfig& large, const CollectiveConfig& small) {
  Cell cell;
  cell.end = CellEnd::kPassed;
  cell.channels = 16;
  for (const char* name : {"Ring", "Tree"})
    cell.graphs[name] = {.channels = 8,
                         .intra_gbps = gbps,
                         .inter_gbps = gbps,
                         .intra_type = "NVL",
                         .inter_type = "PIX",
                         .adapters = {"0", "1"},
                         .pattern = name == std::string("Ring") ? 4 : 1};
  cell.choices.push_back({Collective::kAllReduce, kGiB, large, {}});
  cell.choices.push_back({Collective::kAllReduce, 64, small, {}});
  return cell;
}

constexpr CollectiveConfig kSmall{Algorithm::kTree, Protocol::kLL, 1};

Traffic TimedTraffic() {
  auto traffic = TrafficOf(TimedJob(), 0);
  EXPECT_TRUE(traffic);
  const auto installation = FindInstallation();
  EXPECT_TRUE(installation);
  const auto model = ReadOneModel(*installation, {.architecture = 80}, 16, 2);
  EXPECT_TRUE(model) << model.error().message;
  traffic->model = *model;
  return *traffic;
}

TEST(Traffic, KnowsStepsAndHowLongCallsTook) {
  const Traffic traffic = TimedTraffic();
  EXPECT_EQ(traffic.steps, 3u);
  EXPECT_NEAR(traffic.step_ns, 100e6, 10);
  ASSERT_EQ(traffic.classes.size(), 2u);
  EXPECT_EQ(traffic.classes[0].recorded_ns, 120e6);
  EXPECT_FALSE(traffic.classes[0].knows_waits);
}

TEST(TrafficEffect, HalfTheLinksTakeTwiceTheTimeOfLargeCalls) {
  const Traffic traffic = TimedTraffic();
  CollectiveConfig narrow = kRing;
  narrow.channels = 4;
  const TrafficEffect effect = EffectOn(traffic, OnGraphs(24, kRing, kSmall), OnGraphs(12, narrow, kSmall));
  EXPECT_EQ(effect.calls_with_other_channels, 3u);
  EXPECT_NEAR(effect.changed_bytes, 1, 1e-6);
  ASSERT_TRUE(effect.changed_time);
  EXPECT_NEAR(*effect.changed_time, 0.8, 1e-9) << "40 of 50 ms";
  ASSERT_TRUE(effect.model);
  EXPECT_NEAR(effect.model->ratio(), 2, 0.03) << "but for latencies";
  ASSERT_TRUE(effect.model->step_ns_after);
  EXPECT_NEAR(*effect.model->step_ns_after, 140e6, 1e6) << "40 ms become 80; 64 bytes take as long";
  EXPECT_FALSE(effect.model->knows_waits);
  EXPECT_EQ(effect.classes.front().calls.bytes, kGiB) << "the slower one first";
  EXPECT_TRUE(IsGraveFor(effect));
  EXPECT_FALSE(CostsNothing(effect));
}

TEST(TrafficEffect, ATraceThatKnowsItsWaitsPredictsByThem) {
  Traffic traffic = TimedTraffic();
  for (TrafficClass& one : traffic.classes) {
    one.knows_waits = true;
    one.waited_ns = one.recorded_ns / 4;
  }
  const TrafficEffect effect = EffectOn(traffic, OnGraphs(24, kRing, kSmall), OnGraphs(12, kRing, kSmall));
  EXPECT_TRUE(effect.times_are_waits);
  EXPECT_TRUE(effect.model->knows_waits);
  EXPECT_NEAR(*effect.model->step_ns_after, 110e6, 0.3e6) << "the job waits for 10 of the 40 ms";
}

TEST(TrafficEffect, AnotherChoiceOnTheSameGraphsIsNeverGrave) {
  const Traffic traffic = TimedTraffic();
  const CollectiveConfig slow{Algorithm::kTree, Protocol::kLL, 16};
  const TrafficEffect effect = EffectOn(traffic, OnGraphs(24, kRing, kSmall), OnGraphs(24, slow, kSmall));
  EXPECT_GT(effect.model->ratio(), 1.15);
  EXPECT_EQ(effect.model->best_ratio(), 1);
  EXPECT_FALSE(IsGraveFor(effect)) << "the releases' models disagree, and nobody has measured it";
}

TEST(CompareCells, AdaptersAreGraveWhereTheTrafficMissesThem) {
  const Traffic traffic = TimedTraffic();
  Cell two = OnGraphs(24, kRing, kSmall);
  two.adapters = {{"0", 4}, {"1", 4}};
  for (const double gbps : {24, 12}) {
    Cell one = OnGraphs(gbps, kRing, kSmall);
    one.adapters = {{"0", 8}};
    EXPECT_EQ(VerdictOf(CompareCells(two, one)), CanaryVerdict::kWorse) << "without the job's calls";
    const auto found = CompareCells(two, one, &traffic);
    EXPECT_EQ(VerdictOf(found), gbps == 24 ? CanaryVerdict::kChanged : CanaryVerdict::kWorse);
    const bool has_traffic = std::ranges::any_of(
        found, [](const Difference& each) { return each.kind == DifferenceKind::kTraffic; });
    EXPECT_EQ(has_traffic, gbps == 12);
  }
}

TEST(TrafficEffect, WhatTheModelCannotPriceIsCounted) {
  const Traffic traffic = TimedTraffic();
  Cell bare = OnGraphs(24, kRing, kSmall);
  bare.graphs.clear();
  const TrafficEffect effect = EffectOn(traffic, OnGraphs(24, kRing, kSmall), bare);
  EXPECT_EQ(effect.model->calls_unpriced, 6u);
  EXPECT_FALSE(effect.model->step_ns_after);
  EXPECT_FALSE(CostsNothing(effect));
  const CollectiveConfig collnet{Algorithm::kCollnetDirect, Protocol::kSimple, 8};
  EXPECT_EQ(
      EffectOn(traffic, OnGraphs(24, kRing, kSmall), OnGraphs(24, collnet, kSmall)).model->calls_unpriced,
      3u);
}

TEST(CompareCells, SaysOfChoicesOnlyWhatTheTrafficCalls) {
  const auto traffic = TrafficOf(TraceOf(Job()), 0);
  ASSERT_TRUE(traffic);
  const auto all = CompareCells(Chooses(kRing, 100, 150), Chooses(kTree, 40, 20));
  const auto called = CompareCells(Chooses(kRing, 100, 150), Chooses(kTree, 40, 20), &*traffic);
  EXPECT_EQ(all.size(), 2u) << "AllReduce and Broadcast of 4 MiB share a difference";
  ASSERT_EQ(called.size(), 2u);
  for (const Difference& one : called) EXPECT_EQ(one.collectives.find("Broadcast"), std::string::npos);
}

}  // namespace
}  // namespace dynamiccl
