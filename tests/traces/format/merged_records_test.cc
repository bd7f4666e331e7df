// SPDX-License-Identifier: Apache-2.0
#include "traces/format/merged_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/traces/any_trace.h"
#include "traces/format/equal_calls.h"
#include "traces/format/trace_merge.h"

namespace dynamiccl {
namespace {

using testing::HasSubstr;

Result<Trace> Streamed(const std::vector<Trace>& traces) {
  std::vector<std::unique_ptr<const RecordSource>> sources;
  for (const Trace& trace : traces) sources.push_back(std::make_unique<const MemoryRecords>(trace));
  DYNAMICCL_TRY(const auto merged, MergedRecords::Of(std::move(sources)));
  return ReadTail(*merged, UINT64_MAX / 4);
}

// Returns the files of a job on two hosts. Each rank is in a random file.
std::vector<Trace> SpreadJob(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto world = static_cast<int32_t>(1 + random() % 8);
  std::vector<Trace> traces(1 + random() % 4);
  for (int32_t rank = 0; rank < world; ++rank) {
    SectionBuilder builder(rank, world);
    for (uint64_t call = 0; call < 5 + random() % 5; ++call)
      builder.Call(call, Collective::kAllReduce, 64 * (1 + random() % 2));
    if (random() % 4 == 0) builder.Add(DecisionRecord(0, CollectiveCall{}, DecisionView{}));
    builder.section().host = rank < world / 2 ? "a" : "b";
    builder.section().flags = kTraceMirrored;
    traces[random() % traces.size()].sections.push_back(builder.section());
  }
  return traces;
}

TEST(MergedRecords, AreThoseOfMergedTraces) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const std::vector<Trace> traces = SpreadJob(seed);
    const auto merged = MergeTraces(traces);
    ASSERT_TRUE(merged);
    const auto streamed = Streamed(traces);
    ASSERT_TRUE(streamed) << streamed.error().message;
    EXPECT_EQ(*streamed, *merged) << "seed " << seed;
  }
}

TEST(MergedRecords, TwoTracesOfOneRankAreAnError) {
  const Trace one{{SectionBuilder(1, 2).section()}};
  const auto streamed = Streamed({one, one});
  ASSERT_FALSE(streamed);
  EXPECT_THAT(streamed.error().message, HasSubstr("two traces of rank 1"));
}

// A sink that fails at the end of the section with this number.
class FailingAtEnd final : public RecordSink {
 public:
  explicit FailingAtEnd(int section) : left_(section) {}
  Status BeginSection(const TraceSection& /*description*/, uint64_t /*records*/) override { return {}; }
  Status Take(std::span<const TraceRecord> /*records*/) override { return {}; }
  Status EndSection(uint64_t /*missing*/) override {
    if (left_-- > 0) return {};
    return MakeError(ErrorKind::kUnavailable, "no space is left");
  }

 private:
  int left_;
};

TEST(MergedRecords, AnErrorAtTheEndOfAnySectionEndsThePass) {
  std::vector<std::unique_ptr<const RecordSource>> sources;
  for (int32_t rank = 0; rank < 2; ++rank)
    sources.push_back(std::make_unique<const OwnedRecords>(Trace{{SectionBuilder(rank, 2).section()}}));
  const auto merged = MergedRecords::Of(std::move(sources));
  ASSERT_TRUE(merged);
  for (int section = 0; section < 2; ++section) {
    FailingAtEnd sink(section);
    const Status passed = (*merged)->Pass(sink);
    ASSERT_FALSE(passed) << section;
    EXPECT_EQ(passed.error().message, "no space is left");
  }
}

TEST(ReadTail, CountsTheSendsAndReceivesThatItLeavesOut) {
  SectionBuilder builder(0, 2);
  for (uint64_t call = 0; call < 30; ++call)
    builder.Call(call, call % 3 == 0 ? Collective::kSend : Collective::kRecv, 64);
  std::vector<TransferCounts> left_out;
  ASSERT_TRUE(ReadTail(MemoryRecords(Trace{{builder.section()}}), 3, &left_out));
  const TransferCounts expected{{{0, Collective::kSend, -1}, 9}, {{0, Collective::kRecv, -1}, 18}};
  EXPECT_EQ(left_out, std::vector{expected});
}

TEST(ReadTail, KeepsTheNewestRecordsAndAllAboutCommunicators) {
  SectionBuilder builder(0, 2);
  for (uint64_t call = 0; call < 100; ++call) builder.Call(call, Collective::kAllReduce, 64);
  builder.section().lost = 1;
  const Trace trace{{builder.section()}};
  const auto tail = ReadTail(MemoryRecords(trace), 10);
  ASSERT_TRUE(tail);
  const std::vector<TraceRecord>& records = tail->sections[0].records;
  ASSERT_EQ(records.size(), 11u);
  EXPECT_EQ(records[0].kind, static_cast<uint16_t>(RecordKind::kCommunicator));
  EXPECT_EQ(records[1].call_number, 90u);
  EXPECT_EQ(tail->sections[0].lost, 91u);
}

Status ComparedInPasses(const Trace& trace) {
  const auto agree = CompareRanks(MemoryRecords(trace));
  EXPECT_TRUE(agree) << "memory has no errors";
  return *agree;
}

// A job of two ranks with 100,000 calls each. One call may differ.
class LongJob : public testing::Test {
 protected:
  static constexpr uint64_t kCalls = 100'000;
  static Trace WithDifference(uint64_t at, Collective other) {
    Trace trace;
    for (int32_t rank = 0; rank < 2; ++rank) {
      SectionBuilder builder(rank, 2);
      for (uint64_t call = 0; call < kCalls; ++call)
        builder.Call(call, rank == 1 && call == at ? other : Collective::kAllReduce, 64);
      trace.sections.push_back(std::move(builder.section()));
    }
    return trace;
  }
};

TEST_F(LongJob, ADifferenceIsFoundInPassesAsInMemory) {
  for (const uint64_t at : {uint64_t{0}, uint64_t{77'777}, kCalls - 1}) {
    const Trace trace = WithDifference(at, Collective::kBroadcast);
    const Status in_memory = CheckRanksAgree(trace);
    const Status in_passes = ComparedInPasses(trace);
    ASSERT_FALSE(in_memory);
    ASSERT_FALSE(in_passes) << at;
    EXPECT_EQ(in_passes.error().message, in_memory.error().message);
  }
  EXPECT_TRUE(ComparedInPasses(WithDifference(5, Collective::kAllReduce)));
}

TEST_F(LongJob, ACallThatOneRankLacksIsFoundUnlessItsEndOrStartIsMissing) {
  Trace trace = WithDifference(0, Collective::kAllReduce);
  std::vector<TraceRecord>& records = trace.sections[1].records;
  records.erase(records.begin() + 50'000);
  EXPECT_EQ(ComparedInPasses(trace).error().message, CheckRanksAgree(trace).error().message);
  records.resize(49'000);
  EXPECT_FALSE(ComparedInPasses(trace));
  trace.sections[1].closed = false;
  EXPECT_TRUE(ComparedInPasses(trace)) << "rank 1 was killed";
  records.erase(records.begin() + 1, records.begin() + 1000);
  EXPECT_FALSE(ComparedInPasses(trace));
  trace.sections[1].lost = 999;
  EXPECT_TRUE(ComparedInPasses(trace)) << "newer records replaced the first ones";
  records[10'000].bytes = 128;
  Seal(records[10'000]);
  EXPECT_EQ(ComparedInPasses(trace).error().message, CheckRanksAgree(trace).error().message);
}

// One of two threads issued the calls with odd numbers, and its ring kept only the newer half of them.
TEST_F(LongJob, RingsThatKeptCallsOfUnlikeTimesAreNoDifference) {
  Trace trace = WithDifference(0, Collective::kAllReduce);
  std::vector<TraceRecord>& records = trace.sections[1].records;
  trace.sections[1].lost = std::erase_if(records, [](const TraceRecord& record) {
    return record.kind == static_cast<uint16_t>(RecordKind::kCollective) && record.call_number < kCalls / 2 &&
           record.call_number % 2 == 1;
  });
  EXPECT_TRUE(CheckRanksAgree(trace));
  EXPECT_TRUE(ComparedInPasses(trace));
  records[records.size() - 1000].bytes = 128;
  Seal(records[records.size() - 1000]);
  ASSERT_FALSE(CheckRanksAgree(trace));
  EXPECT_EQ(ComparedInPasses(trace).error().message, CheckRanksAgree(trace).error().message);
}

}  // namespace
}  // namespace dynamiccl
