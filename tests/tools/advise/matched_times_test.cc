// SPDX-License-Identifier: Apache-2.0
// Tests how passes over the records match the same collective of several ranks without keeping the calls.
#include "tools/advise/matched_times.h"

#include <gtest/gtest.h>

#include "traces/format/record_views.h"

namespace dynamiccl {
namespace {

// Returns a rank's calls on one communicator of `ranks` ranks. Call i takes duration_ns(i).
TraceSection SectionOf(int rank, int ranks, uint64_t calls,
                       const std::function<int64_t(uint64_t)>& duration_ns) {
  TraceSection section;
  section.rank = rank;
  section.records.push_back(
      CommunicatorRecord(0, {.id = 7, .rank = rank, .n_ranks = ranks, .n_nodes = 1}, 0));
  for (uint64_t i = 0; i < calls; ++i) {
    IssuedCall issued;
    issued.call.call_number = i;
    issued.call.bytes = 1 << 20;
    issued.issued_ns = static_cast<int64_t>(i) * 1'000'000 + rank * 1000;
    TraceRecord record = CallRecord(0, issued);
    record.duration_ns = static_cast<uint32_t>(duration_ns(i));
    record.duration_source = static_cast<uint8_t>(DurationSource::kStream);
    section.records.push_back(record);
  }
  return section;
}

// The trace has more collectives than one pass can join.
TEST(MatchedPasses, FindEachCollectiveOnceInParts) {
  constexpr uint64_t kCalls = 300'000;
  const auto by_number = [](uint64_t i) { return static_cast<int64_t>(5000 + i % 100); };
  const Trace trace{{SectionOf(0, 2, kCalls, by_number),
                     SectionOf(1, 2, kCalls + 1, [&](uint64_t i) { return by_number(i) - 1000; })}};
  const MemoryRecords records(trace);
  const auto sections = ScanSections(records, SIZE_MAX);
  const auto passes = MatchedPasses::Begin(records, *sections);
  ASSERT_TRUE(passes);
  EXPECT_TRUE(passes->any_timed());
  uint64_t of_both = 0, of_one = 0;
  int64_t time_ns = 0;
  ASSERT_TRUE(passes->Pass([&](const MatchedTimes& matched) {
    (matched.ranks < 2 ? of_one : of_both) += 1;
    if (matched.ranks < 2) return;
    EXPECT_EQ(matched.last_section, 1u);
    EXPECT_EQ(matched.most_ns - matched.least_ns, 1000);
    EXPECT_EQ(matched.TimeNs(), matched.least_ns) << "rank 1 starts last, and both end at once";
    time_ns += matched.TimeNs();
  }));
  EXPECT_EQ(of_both, kCalls);
  EXPECT_EQ(of_one, 1u);
  EXPECT_EQ(time_ns, int64_t{4000} * kCalls + int64_t{4950} * (kCalls / 100));
}

// The trace has more times than fit in memory, so it is read twice.
TEST(TimesOfCells, MedianOfManyCallsIsExact) {
  const Trace trace{
      {SectionOf(0, 2, 9001, [](uint64_t i) { return static_cast<int64_t>(10'000 + i * 7919 % 9001); })}};
  const MemoryRecords records(trace);
  const auto cells = TimesOfCells(records, *ScanSections(records, SIZE_MAX));
  ASSERT_TRUE(cells);
  ASSERT_EQ(cells->size(), 1u);
  EXPECT_DOUBLE_EQ(cells->front().us, 14.5) << "10,000 ns and the middle of 0 to 9,000";
  EXPECT_EQ(cells->front().n_ranks, 2);
  EXPECT_TRUE(TimesOfCells(MemoryRecords(Trace{}), {})->empty());
}

}  // namespace
}  // namespace dynamiccl
