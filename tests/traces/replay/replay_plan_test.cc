// SPDX-License-Identifier: Apache-2.0
#include "traces/replay/replay_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/traces/any_trace.h"
#include "traces/replay/replay_summary.h"

namespace dynamiccl {
namespace {

using testing::HasSubstr;

TraceSection Section(int32_t rank, int32_t world) {
  SectionBuilder builder(rank, world);
  builder.Call(0, Collective::kAllReduce, 64)
      .Call(1, Collective::kReduceScatter, 4096)
      .Call(2, Collective::kAllGather, 4096);
  return builder.section();
}

TEST(ReplayPlan, RepeatsEveryOperation) {
  const Trace trace{{Section(0, 2), Section(1, 2)}};
  for (int32_t rank = 0; rank < 2; ++rank) {
    const auto plan = PlanReplay(trace, rank, 2, {});
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_EQ(OperationHash(*plan), OperationHash(CallsOf(trace.sections[static_cast<size_t>(rank)])));
    ASSERT_EQ(plan->communicators.size(), 1u);
    EXPECT_EQ(plan->communicators[0].key, rank);
    EXPECT_TRUE(plan->notes.empty());
  }
}

TEST(ReplayPlan, MirrorsATraceOfOneRankAndSaysSo) {
  const Trace trace{{Section(0, 4)}};
  for (int32_t rank = 0; rank < 4; ++rank) {
    const auto plan = PlanReplay(trace, rank, 4, {});
    ASSERT_TRUE(plan);
    EXPECT_THAT(plan->notes, testing::Contains(HasSubstr("every rank issues its calls")));
    EXPECT_EQ(plan->communicators[0].key, rank);
    EXPECT_EQ(OperationHash(*plan), OperationHash(CallsOf(trace.sections[0])));
  }
  EXPECT_EQ(PlanReplay(trace, 1, 2, {})->communicators[0].n_ranks, 2);
}

TEST(ReplayPlan, NeedsAsManyRanksAsWereRecorded) {
  const auto plan = PlanReplay({{Section(0, 2), Section(1, 2)}}, 0, 3, {});
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().hint, "use -n 2");
  EXPECT_FALSE(PlanReplay({}, 0, 1, {}));
}

TEST(ReplayPlan, GivesSubgroupsAColorAndOutsidersNone) {
  Trace trace;
  for (int32_t rank = 0; rank < 3; ++rank) {
    SectionBuilder builder(rank, 3);
    // Ranks 1 and 2 form a pair in reverse order.
    if (rank > 0)
      builder.Add(CommunicatorRecord(1, {.id = 0xdef, .rank = 2 - rank, .n_ranks = 2, .n_nodes = 1}, 0));
    trace.sections.push_back(builder.section());
  }
  const auto outsider = PlanReplay(trace, 0, 3, {});
  ASSERT_TRUE(outsider);
  ASSERT_EQ(outsider->communicators.size(), 2u) << "splitting is collective: every rank takes part";
  EXPECT_EQ(outsider->communicators[1].color, -1);
  EXPECT_EQ(PlanReplay(trace, 1, 3, {})->communicators[1].key, 1);
  EXPECT_EQ(PlanReplay(trace, 2, 3, {})->communicators[1].key, 0);
  trace.sections[2].records.pop_back();
  EXPECT_THAT(PlanReplay(trace, 1, 3, {}).error().message, HasSubstr("1 of the 2 ranks"));
}

TEST(ReplayPlan, TakesAWindowAndKeepsGroups) {
  SectionBuilder builder(0, 2);
  builder.Call(0, Collective::kAllReduce, 64)
      .Call(0, Collective::kAllReduce, 128)
      .Call(1, Collective::kAllReduce, 256);
  builder.section().records[2].index_in_group = 1;
  const auto whole = PlanReplay({{builder.section()}}, 0, 2, {});
  ASSERT_EQ(whole->groups.size(), 2u);
  EXPECT_EQ(whole->groups[0].calls.size(), 2u);
  const auto window = PlanReplay({{builder.section()}}, 0, 2, {.first = 1, .count = 1});
  ASSERT_EQ(window->groups.size(), 1u);
  EXPECT_EQ(window->groups[0].calls[0].issued.call.bytes, 128u);
  EXPECT_TRUE(PlanReplay({{builder.section()}}, 0, 2, {.first = 99})->groups.empty());
}

// Two ranks that issue the same collectives. Their clocks differ, and one of them has other calls between the
// collectives.
Trace UnevenRanks() {
  Trace trace;
  for (int32_t rank = 0; rank < 2; ++rank) {
    SectionBuilder builder(rank, 2);
    builder.Add(CommunicatorRecord(
        1, {.id = 50u + static_cast<uint64_t>(rank), .rank = 0, .n_ranks = 1, .n_nodes = 1}, 0));
    for (uint64_t step = 0; step < 4; ++step) {
      builder.Add(StepRecord({.marked_ns = 0, .step = step}));
      IssuedCall own;
      own.call.call_number = step;
      own.call.bytes = 8;
      if (rank == 1) builder.Add(CallRecord(1, own));
      builder.Call(2 * step, Collective::kReduceScatter, 4096)
          .Call(2 * step + 1, Collective::kAllGather, 4096);
    }
    builder.section().opened = {rank * 7, 0};
    trace.sections.push_back(builder.section());
  }
  return trace;
}

std::vector<uint64_t> SharedCallsOf(const ReplayPlan& plan) {
  std::vector<uint64_t> numbers;
  for (const ReplayGroup& group : plan.groups) {
    for (const TraceCall& call : group.calls)
      if (call.issued.call.communicator == 0xabc) numbers.push_back(call.issued.call.call_number);
  }
  return numbers;
}

TEST(ReplayPlan, AWindowHoldsTheSameCollectivesOnEveryRank) {
  const Trace trace = UnevenRanks();
  std::mt19937_64 random(3);
  for (int i = 0; i < 200; ++i) {
    ReplayWindow window;
    if (i % 3 == 0) window.first = random() % 10, window.count = random() % 10;
    if (i % 3 == 1)
      window.first_step = static_cast<int64_t>(random() % 4), window.last_step = window.first_step + 1;
    if (i % 3 == 2)
      window.begin_ns = static_cast<int64_t>(random() % 20), window.end_ns = window.begin_ns + 5;
    EXPECT_EQ(SharedCallsOf(*PlanReplay(trace, 0, 2, window)),
              SharedCallsOf(*PlanReplay(trace, 1, 2, window)));
  }
}

TEST(ReplayPlan, TakesAWindowOfStepsAndOfTime) {
  const Trace trace = UnevenRanks();
  const auto steps = PlanReplay(trace, 0, 2, {.first_step = 1, .last_step = 2});
  EXPECT_EQ(SharedCallsOf(*steps), (std::vector<uint64_t>{2, 3, 4, 5}));
  EXPECT_TRUE(PlanReplay(trace, 0, 2, {.first_step = 4})->groups.empty());
  // The trace begins with rank 1's own call at 996. Rank 0 issues the shared calls at 1003, 1004, 1006, ...
  const auto time = PlanReplay(trace, 1, 2, {.begin_ns = 7, .end_ns = 10});
  EXPECT_EQ(SharedCallsOf(*time), (std::vector<uint64_t>{0, 1}));
}

TEST(ReplayPlan, LeavesOutWhatCannotBeIssued) {
  SectionBuilder builder(0, 2);
  builder.Call(0, Collective::kAllReduce, 0)
      .Call(1, Collective::kSend, 64)
      .Call(2, Collective::kSendRecv, 64);
  const auto plan = PlanReplay({{builder.section()}}, 0, 2, {});
  ASSERT_EQ(plan->groups.size(), 1u);
  EXPECT_EQ(plan->groups[0].calls[0].issued.call.collective, Collective::kSendRecv);
  EXPECT_THAT(plan->notes, testing::Contains(HasSubstr("2 calls left out")));
}

TEST(ReplaySummary, SharesAGroupsTimeByBytes) {
  SectionBuilder builder(0, 2);
  builder.Call(0, Collective::kAllReduce, 1024)
      .Call(0, Collective::kAllReduce, 3072)
      .Call(1, Collective::kAllReduce, 1024);
  builder.section().records.back().duration_ns = 7000;
  builder.section().records.back().duration_source = static_cast<uint8_t>(DurationSource::kStream);
  const auto plan = PlanReplay({{builder.section()}}, 0, 2, {});
  const auto rows = SummarizeReplay(*plan, {8.0, 5.0});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].calls, 2u);
  EXPECT_DOUBLE_EQ(rows[0].replayed_us, 2.0 + 5.0);
  EXPECT_DOUBLE_EQ(rows[0].recorded_us, 7.0);
  EXPECT_EQ(rows[0].recorded_calls, 1u);
  EXPECT_DOUBLE_EQ(rows[1].replayed_us, 6.0);
  EXPECT_THAT(FormatReplayRows(rows), HasSubstr("AllReduce"));
  EXPECT_EQ(rows[0].best_us, -1) << "no sweep, no best";
  auto swept = rows;
  swept[0].default_us = 30;
  swept[0].best_us = 20.25;
  EXPECT_THAT(FormatReplayRows(swept), HasSubstr("30.0         20.2\n"));
}

TEST(ReplaySummary, LeavesOutColumnsWithoutAnyValue) {
  ReplayRow row{.size_class = SizeClassOf(1024), .calls = 2, .bytes = 2048, .replayed_us = 5};
  EXPECT_EQ(FormatReplayRows({row}),
            "collective     size class          calls      bytes     replayed   us per call\n"
            "AllReduce      1K..1.25K               2         2K          2.5\n");
  ReplayRow labelled = row;
  labelled.stage = ZeroStage::kStage2;
  labelled.recorded_calls = 1;
  labelled.recorded_us = 7;
  const std::string some = FormatReplayRows({row, labelled});
  EXPECT_THAT(some, HasSubstr("stage    collective"));
  EXPECT_THAT(some, HasSubstr("bytes     recorded     replayed   us per call"));
  EXPECT_THAT(some, HasSubstr("\n-        AllReduce"));
  EXPECT_THAT(some, testing::Not(HasSubstr("best")));
}

}  // namespace
}  // namespace dynamiccl
