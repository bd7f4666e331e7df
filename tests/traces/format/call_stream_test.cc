// SPDX-License-Identifier: Apache-2.0
#include "traces/format/call_stream.h"

#include <gtest/gtest.h>

#include "tests/traces/any_trace.h"
#include "traces/format/equal_calls.h"
#include "traces/format/trace_merge.h"

namespace dynamiccl {
namespace {

std::vector<TraceCall> Streamed(const TraceSection& section) {
  const auto communicators = CommunicatorsOf(section);
  std::vector<TraceCall> calls;
  CallStream stream(communicators, true, [&](StreamedCall& call) {
    calls.push_back(DecodedCall(call, communicators.at(call.record.communicator)));
  });
  for (const TraceRecord& record : section.records) stream.Take(record);
  stream.Finish();
  return calls;
}

// Requires equal calls, with equal answers and steps.
void ExpectSame(const std::vector<TraceCall>& streamed, const std::vector<TraceCall>& whole) {
  ASSERT_EQ(streamed.size(), whole.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(streamed[i].issued.call.call_number, whole[i].issued.call.call_number) << i;
    EXPECT_EQ(streamed[i].issued.call.bytes, whole[i].issued.call.bytes) << i;
    EXPECT_EQ(streamed[i].issued.duration_ns, whole[i].issued.duration_ns) << i;
    EXPECT_EQ(streamed[i].issued.issued_ns, whole[i].issued.issued_ns) << i;
    EXPECT_EQ(streamed[i].decision, whole[i].decision) << i;
    EXPECT_EQ(streamed[i].step, whole[i].step) << i;
  }
}

// Returns a section whose fields have few different values. So the same keys occur again, and answers come
// before and after their calls.
TraceSection Crowded(uint64_t seed) {
  std::mt19937_64 random(seed);
  SectionBuilder builder(0, 2);
  for (int i = 0; i < 200; ++i) {
    CollectiveCall call;
    call.call_number = random() % 30;
    call.index_in_group = static_cast<uint16_t>(random() % 2);
    call.bytes = random() % 4;
    const auto communicator = static_cast<uint32_t>(random() % 2);
    if (random() % 9 == 0)
      builder.Add(StepRecord({.step = random() % 5}));
    else if (random() % 2 == 0)
      builder.Add(DecisionRecord(communicator, call, {.table_version = static_cast<uint8_t>(random())}));
    else
      builder.Add(CallRecord(communicator, {.call = call}));
  }
  return builder.section();
}

TEST(CallStream, JoinsAsTheWholeSectionIsJoined) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    ExpectSame(Streamed(Crowded(seed)), CallsOf(Crowded(seed)).calls);
    for (const TraceSection& section : AnyTrace(seed).sections)
      ExpectSame(Streamed(section), CallsOf(section).calls);
  }
}

TEST(CallStream, ACallWaitsForItsAnswerAsLongAsPromised) {
  for (const size_t between : {kWaitingCalls - 1, kWaitingCalls}) {
    SectionBuilder builder(0, 2);
    for (uint64_t i = 0; i <= between; ++i) builder.Call(i, Collective::kAllReduce, 64);
    builder.Add(DecisionRecord(0, {}, {.table_version = 7}));
    EXPECT_EQ(Streamed(builder.section()).front().decision.has_value(), between < kWaitingCalls);
  }
}

TEST(EqualCalls, HoldOnlyWhereTheRanksAgree) {
  int equal = 0, different = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    Trace trace;
    for (int rank = 0; rank < 2; ++rank) {
      SectionBuilder builder(rank, 2);
      const uint64_t calls = 3 + (random() % 4 == 0 ? 1 : 0);
      for (uint64_t i = 0; i < calls; ++i)
        builder.Call(i, Collective::kAllReduce, random() % 6 == 0 ? 128 : 64);
      trace.sections.push_back(builder.section());
    }
    const auto same = RanksHaveEqualCalls(MemoryRecords(trace));
    ASSERT_TRUE(same);
    EXPECT_EQ(*same, CheckRanksAgree(trace).has_value()) << seed;
    ++(*same ? equal : different);
  }
  EXPECT_GT(equal, 30);
  EXPECT_GT(different, 30);
}

}  // namespace
}  // namespace dynamiccl
