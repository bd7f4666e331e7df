// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/any_trace.h"
#include "traces/format/trace_merge.h"

namespace dynamiccl {
namespace {

using testing::ElementsAre;

// Returns a job in which rank i ran on hosts[i]. Each rank issued one call.
Trace JobOn(const std::vector<std::string>& hosts) {
  Trace trace;
  const auto world = static_cast<int32_t>(hosts.size());
  for (int32_t rank = 0; rank < world; ++rank) {
    SectionBuilder builder(rank, world);
    builder.Call(0, Collective::kAllReduce, 4096);
    builder.section().host = hosts[static_cast<size_t>(rank)];
    trace.sections.push_back(builder.section());
  }
  return trace;
}

std::vector<int> NodesOf(const Trace& trace) {
  std::vector<int> nodes;
  for (const TraceSection& section : trace.sections) {
    for (const TraceRecord& record : section.records) {
      EXPECT_TRUE(IsWhole(record));
      if (record.kind == static_cast<uint16_t>(RecordKind::kCommunicator))
        nodes.push_back(CommunicatorOf(record).n_nodes);
    }
  }
  return nodes;
}

TEST(NodesByHost, AreTheHostsOfAllRanks) {
  Trace trace = JobOn({"a", "a", "b", "b"});
  CountNodesByHost(trace);
  EXPECT_THAT(NodesOf(trace), ElementsAre(2, 2, 2, 2));
  const Trace counted = trace;
  CountNodesByHost(trace);
  EXPECT_EQ(trace, counted);
}

TEST(NodesByHost, OfOneHostOrOfUnnamedHostsStayAsTheyAre) {
  for (const std::vector<std::string>& hosts : {std::vector<std::string>{"a", "a"}, {"", ""}, {"a", ""}}) {
    const Trace before = JobOn(hosts);
    Trace after = before;
    CountNodesByHost(after);
    EXPECT_EQ(after, before);
  }
}

TEST(NodesByHost, AreNotGuessedWhileARankIsMissing) {
  Trace trace = JobOn({"a", "b", "b"});
  trace.sections.pop_back();
  CountNodesByHost(trace);
  EXPECT_THAT(NodesOf(trace), ElementsAre(1, 1));
}

TEST(NodesByHost, ThatNcclToldATunerStand) {
  Trace asked = JobOn({"a", "b"});
  TraceRecord decision = DecisionRecord(0, CollectiveCall{}, DecisionView{});
  Seal(decision);
  asked.sections[1].records.push_back(decision);
  CountNodesByHost(asked);
  EXPECT_THAT(NodesOf(asked), ElementsAre(1, 1));
  Trace emulated = JobOn({"a", "a", "a", "b"});
  for (TraceSection& section : emulated.sections) {
    section.records.front().index_in_group = 4;
    Seal(section.records.front());
  }
  CountNodesByHost(emulated);
  EXPECT_THAT(NodesOf(emulated), ElementsAre(4, 4, 4, 4));
}

TEST(NodesByHost, OfEachCommunicatorAreItsOwn) {
  Trace trace = JobOn({"a", "a", "b", "b"});
  for (int32_t rank = 0; rank < 4; ++rank) {
    auto& records = trace.sections[static_cast<size_t>(rank)].records;
    const uint64_t pair = 0x100 + static_cast<uint64_t>(rank / 2),
                   across = 0x200 + static_cast<uint64_t>(rank % 2);
    records.push_back(CommunicatorRecord(1, {.id = pair, .rank = rank % 2, .n_ranks = 2, .n_nodes = 1}, 0));
    records.push_back(CommunicatorRecord(2, {.id = across, .rank = rank / 2, .n_ranks = 2, .n_nodes = 1}, 0));
    Seal(records[records.size() - 1]);
    Seal(records[records.size() - 2]);
  }
  CountNodesByHost(trace);
  EXPECT_THAT(NodesOf(trace), ElementsAre(2, 1, 2, 2, 1, 2, 2, 1, 2, 2, 1, 2));
}

TEST(NodesByHost, AreCountedByMerging) {
  const Trace job = JobOn({"a", "b"});
  const auto merged = MergeTraces({Trace{{job.sections[0]}}, Trace{{job.sections[1]}}});
  ASSERT_TRUE(merged);
  EXPECT_THAT(NodesOf(*merged), ElementsAre(2, 2));
}

}  // namespace
}  // namespace dynamiccl
