// SPDX-License-Identifier: Apache-2.0
#include "traces/format/trace_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/any_trace.h"
#include "traces/format/trace_merge.h"

namespace dynamiccl {
namespace {

using testing::HasSubstr;

IssuedCall AllReduce(uint64_t call_number, uint16_t index, uint64_t bytes) {
  IssuedCall issued;
  issued.call.call_number = call_number;
  issued.call.index_in_group = index;
  issued.call.group_size = 2;
  issued.call.bytes = bytes;
  issued.labelled_role = Role::kGradientReduce;
  issued.labelled_phase = Phase::kBackward;
  issued.labelled_stage = ZeroStage::kStage2;
  return issued;
}

TEST(TraceCalls, ViewsGiveBackWhatWasRecorded) {
  const CommunicatorInfo info{.id = 0xabc, .rank = 1, .n_ranks = 4, .n_nodes = 2};
  IssuedCall issued = AllReduce(17, 1, 1 << 20);
  issued.call.communicator = info.id;
  issued.call.n_ranks = info.n_ranks;
  issued.rank = info.rank;
  const IssuedCall back = IssuedCallOf(CallRecord(3, issued), CommunicatorOf(CommunicatorRecord(3, info, 0)));
  EXPECT_EQ(back.call.communicator, 0xabcu);
  EXPECT_EQ(back.call.call_number, 17u);
  EXPECT_EQ(back.call.bytes, 1u << 20);
  EXPECT_EQ(back.call.index_in_group, 1);
  EXPECT_EQ(back.call.group_size, 2);
  EXPECT_EQ(back.call.n_ranks, 4);
  EXPECT_EQ(back.rank, 1);
  EXPECT_EQ(back.root_or_peer, -1);
  EXPECT_EQ(back.duration_ns, -1);
  EXPECT_EQ(back.labelled_role, Role::kGradientReduce);
  EXPECT_EQ(back.labelled_phase, Phase::kBackward);
  EXPECT_EQ(back.labelled_stage, ZeroStage::kStage2);
}

TEST(TraceCalls, JoinsAnswersByCommunicatorCallAndIndex) {
  SectionBuilder builder(0, 2);
  const DecisionView first{
      .asked_ns = 0, .config = {Algorithm::kRing, Protocol::kLL, 2}, .decided_by = DecidedBy::kPolicy};
  const DecisionView second{.asked_ns = 0, .config = {Algorithm::kTree, Protocol::kSimple, 4}};
  builder.Add(CallRecord(0, AllReduce(0, 0, 100)));
  builder.Add(DecisionRecord(0, AllReduce(0, 1, 200).call, second));  // before the second call's record
  builder.Add(CallRecord(0, AllReduce(0, 1, 200)));
  builder.Add(DecisionRecord(0, AllReduce(0, 0, 100).call, first));
  builder.Add(DecisionRecord(0, AllReduce(9, 0, 100).call, first));
  builder.Add(CallRecord(0, AllReduce(1, 0, 100)));
  const SectionCalls calls = CallsOf(builder.section());
  ASSERT_EQ(calls.calls.size(), 3u);
  EXPECT_EQ(calls.calls[0].decision->config, first.config);
  EXPECT_EQ(calls.calls[0].decision->decided_by, DecidedBy::kPolicy);
  EXPECT_EQ(calls.calls[1].decision->config, second.config);
  EXPECT_FALSE(calls.calls[2].decision);
  EXPECT_EQ(calls.without_call, 1u);
}

// In a group, sends and collectives are each numbered from 0. The answer belongs to the collective, whichever
// comes first.
TEST(TraceCalls, ASendOfTheSameGroupDoesNotTakeTheAnswer) {
  for (const bool send_first : {false, true}) {
    SectionBuilder builder(0, 2);
    IssuedCall send = AllReduce(0, 0, 100);
    send.call.collective = Collective::kSend;
    if (send_first) builder.Add(CallRecord(0, send));
    builder.Add(CallRecord(0, AllReduce(0, 0, 100)));
    if (!send_first) builder.Add(CallRecord(0, send));
    builder.Add(DecisionRecord(0, AllReduce(0, 0, 100).call,
                               {.asked_ns = 0, .config = {Algorithm::kRing, Protocol::kLL, 2}}));
    const SectionCalls calls = CallsOf(builder.section());
    ASSERT_EQ(calls.calls.size(), 2u);
    EXPECT_EQ(calls.calls[send_first ? 1 : 0].decision.has_value(), true);
    EXPECT_EQ(calls.calls[send_first ? 0 : 1].decision.has_value(), false);
  }
}

TEST(TraceCalls, KeepsWhatIsKnownOfMemoryAndOfWaiting) {
  const MemoryView memory{7, uint64_t{3} << 30, uint64_t{80} << 30};
  const WaitedShareView waited{9, 2, Collective::kAllGather, 4096, Role::kParameterGather, 0.375};
  WaitedShareView beyond = waited;
  beyond.share = -0.2;  // a fit by least squares may exceed 0 to 1
  SectionBuilder builder(0, 2);
  builder.Add(MemoryRecord(memory));
  builder.Add(WaitedShareRecord(waited));
  builder.Add(WaitedShareRecord(beyond));
  TraceSection section = builder.section();
  section.records[section.records.size() - 3].issued_ns = 7;  // the builder has its own clock
  section.records[section.records.size() - 2].issued_ns = 9;
  const SectionCalls calls = CallsOf(section);
  EXPECT_EQ(calls.memory, std::vector{memory});
  ASSERT_EQ(calls.waited_shares.size(), 2u);
  EXPECT_EQ(calls.waited_shares[0], waited);
  EXPECT_EQ(calls.waited_shares[1].share, 0);
  EXPECT_EQ(calls.unknown_kinds, 0u);
}

TEST(TraceCalls, KeepsTheSamplesOfSteps) {
  SectionBuilder builder(0, 2);
  builder.Add(SamplesRecord({.marked_ns = 0, .samples = 16}));
  TraceSection section = builder.section();
  section.records.back().issued_ns = 5;
  EXPECT_EQ(CallsOf(section).samples, (std::vector<SamplesView>{{5, 16}}));
}

TEST(TraceCalls, KnowsTheStepAndSkipsWhatItDoesNotKnow) {
  SectionBuilder builder(0, 2);
  builder.Call(0, Collective::kBroadcast, 8);
  builder.Add(
      StepRecord({.marked_ns = 0, .step = 12, .phase = Phase::kForward, .stage = ZeroStage::kStage3}));
  builder.Call(1, Collective::kAllGather, 8);
  TraceRecord later = EmptyRecord(RecordKind::kStep, 0);
  later.kind = 99;
  builder.Add(later);
  TraceRecord elsewhere = CallRecord(7, AllReduce(0, 0, 4));
  builder.Add(elsewhere);
  const SectionCalls calls = CallsOf(builder.section());
  ASSERT_EQ(calls.calls.size(), 2u);
  EXPECT_EQ(calls.calls[0].step, -1);
  EXPECT_EQ(calls.calls[1].step, 12);
  EXPECT_EQ(calls.steps.at(0).stage, ZeroStage::kStage3);
  EXPECT_EQ(calls.unknown_kinds, 1u);
  EXPECT_EQ(calls.without_communicator, 1u);
}

TEST(TraceCalls, HashIsOfOperationsAlone) {
  SectionBuilder a(0, 2);
  a.Call(5, Collective::kAllReduce, 64).Call(6, Collective::kAllGather, 128);
  SectionBuilder b(1, 2);
  b.section().records[0].bytes = 0xdef;  // another id of the communicator
  b.Add(StepRecord({})).Call(0, Collective::kAllReduce, 64).Call(1, Collective::kAllGather, 128);
  EXPECT_EQ(OperationHash(CallsOf(a.section())), OperationHash(CallsOf(b.section())));
  b.Call(2, Collective::kAllGather, 128);
  EXPECT_NE(OperationHash(CallsOf(a.section())), OperationHash(CallsOf(b.section())));
}

Trace TwoRanks(Collective second_of_rank_1, uint64_t bytes) {
  SectionBuilder a(0, 2);
  a.Call(0, Collective::kAllReduce, 64).Call(1, Collective::kAllReduce, 1 << 20);
  SectionBuilder b(1, 2);
  b.Call(0, Collective::kAllReduce, 64).Call(1, second_of_rank_1, bytes);
  return {{a.section(), b.section()}};
}

TEST(TraceMerge, AcceptsRanksThatAgree) {
  EXPECT_TRUE(CheckRanksAgree(TwoRanks(Collective::kAllReduce, 1 << 20)));
}

TEST(TraceMerge, NamesRankAndCallOfADisagreement) {
  const Status status = CheckRanksAgree(TwoRanks(Collective::kReduceScatter, 1 << 20));
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("communicator 0xabc, call 1: rank 0 issued AllReduce of 1M"));
  EXPECT_THAT(status.error().message, HasSubstr("rank 1 issued ReduceScatter of 1M"));
  EXPECT_FALSE(CheckRanksAgree(TwoRanks(Collective::kAllReduce, 1 << 19)));
}

// Sends also take call numbers. So such ranks are compared by the order of calls, which lost records would
// shift.
TEST(TraceMerge, RanksThatSendAreNotComparedWhereRecordsAreMissing) {
  Trace trace = TwoRanks(Collective::kAllReduce, 1 << 20);
  IssuedCall send;
  send.call.collective = Collective::kSend;
  send.call.call_number = 2;
  TraceRecord record = CallRecord(0, send);
  Seal(record);
  trace.sections[0].records.push_back(record);
  EXPECT_TRUE(CheckRanksAgree(trace));
  trace.sections[1].records.erase(trace.sections[1].records.begin() + 1);
  EXPECT_FALSE(CheckRanksAgree(trace));
  trace.sections[1].lost = 1;
  EXPECT_TRUE(CheckRanksAgree(trace));
}

TEST(TraceMerge, AMissingCallIsForgivenOnlyToAKilledRankAtTheEnd) {
  Trace trace = TwoRanks(Collective::kAllReduce, 1 << 20);
  trace.sections[1].records.pop_back();
  EXPECT_THAT(CheckRanksAgree(trace).error().message, HasSubstr("rank 1 issued nothing"));
  trace.sections[1].closed = false;
  EXPECT_TRUE(CheckRanksAgree(trace));
  trace = TwoRanks(Collective::kAllReduce, 1 << 20);
  trace.sections[0].records.erase(trace.sections[0].records.begin() + 1);
  EXPECT_THAT(CheckRanksAgree(trace).error().message, HasSubstr("rank 0 issued nothing"));
  trace.sections[0].lost = 1;
  EXPECT_TRUE(CheckRanksAgree(trace));
}

TEST(TraceMerge, OrdersByRankAndRefusesARankTwice) {
  SectionBuilder a(0, 2);
  SectionBuilder b(1, 2);
  const auto merged = MergeTraces({Trace{{b.section()}}, Trace{{a.section()}}});
  ASSERT_TRUE(merged);
  EXPECT_EQ(merged->sections[0].rank, 0);
  EXPECT_EQ(merged->sections[1].rank, 1);
  const auto twice = MergeTraces({Trace{{a.section()}}, Trace{{a.section()}}});
  ASSERT_FALSE(twice);
  EXPECT_THAT(twice.error().message, HasSubstr("two traces of rank 0"));
}

}  // namespace
}  // namespace dynamiccl
