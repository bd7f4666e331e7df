// SPDX-License-Identifier: Apache-2.0
// Jobs that hang as public reports describe, and jobs that differ from a report in one thing. The report's
// name must not appear for the latter.
#include "tools/hang/known_hangs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tools/report/json_output.h"
#include "traces/format/record_views.h"

namespace dynamiccl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kCommunicator = 0xc0ffee;

void Add(TraceSection& section, TraceRecord record) {
  record.issued_ns = static_cast<int64_t>(section.records.size());
  Seal(record);
  section.records.push_back(record);
}

TraceSection Process(int rank, int world, const std::string& host, const std::string& library) {
  TraceSection section;
  section.rank = rank;
  section.world = world;
  section.process_id = 100 + rank;
  section.host = host;
  section.library = library;
  return section;
}

// Returns ranks that entered the init of one communicator and have not returned. `nodes` has the number of
// ranks of each node.
std::vector<TraceSection> JobInInit(const std::string& library, const std::vector<int>& nodes) {
  int world = 0;
  for (const int ranks : nodes) world += ranks;
  std::vector<TraceSection> sections;
  for (size_t node = 0; node < nodes.size(); ++node) {
    for (int i = 0; i < nodes[node]; ++i) {
      const int rank = static_cast<int>(sections.size());
      sections.push_back(Process(rank, world, fmt::format("node{}", node), library));
      InsideMark mark{};
      mark.bytes = kCommunicator;
      mark.root_or_peer = static_cast<int16_t>(rank);
      mark.group_size = static_cast<uint16_t>(world);
      mark.what = static_cast<uint8_t>(InsideOf::kInit);
      Add(sections.back(), InsideRecord(mark));
    }
  }
  return sections;
}

// Returns four ranks on two nodes. Rank 2 is inside its last call. The others have returned from that call
// and issued `further` more.
std::vector<TraceSection> JobInCall(const std::string& library, int further, bool all_inside = false) {
  std::vector<TraceSection> sections;
  for (int rank = 0; rank < 4; ++rank) {
    sections.push_back(Process(rank, 4, rank < 2 ? "a" : "b", library));
    Add(sections.back(), CommunicatorRecord(0, {kCommunicator, rank, 4, 2}, 0));
    const bool inside = rank == 2 || all_inside;
    const int returned = inside ? 5 : 6 + further;
    for (int i = 0; i < returned; ++i) {
      IssuedCall issued;
      issued.call.bytes = 4096;
      issued.call.call_number = static_cast<uint64_t>(i);
      Add(sections.back(), CallRecord(0, issued));
    }
    if (!inside) continue;
    InsideMark mark{};
    mark.call_number = 5;
    mark.bytes = 4096;
    mark.root_or_peer = -1;
    mark.group_size = 1;
    mark.collective = static_cast<uint8_t>(CollectiveCall{}.collective);
    mark.data_type = static_cast<uint8_t>(CollectiveCall{}.data_type);
    mark.op = static_cast<uint8_t>(CollectiveCall{}.op);
    mark.what = static_cast<uint8_t>(InsideOf::kCall);
    Add(sections.back(), InsideRecord(mark));
  }
  return sections;
}

std::vector<std::string> KnownOf(const std::vector<TraceSection>& sections) {
  JobCalls job;
  for (const TraceSection& section : sections) job.Add(section);
  const auto text = ReadTextFile(KNOWN_ISSUES);
  const auto known = ParseKnownIssues(text.value());
  EXPECT_TRUE(known) << known.error().message;
  std::vector<std::string> ids;
  for (const KnownIssue& issue : KnownHangs(*known, job, DiagnoseHang(job))) ids.push_back(issue.id);
  return ids;
}

TEST(KnownHangs, UnlikeNodesInInit) {
  EXPECT_THAT(KnownOf(JobInInit("NCCL 2.31.2", {7, 8})), ElementsAre("NVIDIA/nccl#2385"));
  EXPECT_THAT(KnownOf(JobInInit("NCCL 2.31.2", {1, 2})), ElementsAre("NVIDIA/nccl#2385"));
}

TEST(KnownHangs, WhatTheReportSaysIsFreeOfItIsNotCalledByItsName) {
  EXPECT_THAT(KnownOf(JobInInit("NCCL 2.31.2", {8, 8})), IsEmpty()) << "as many ranks on each node";
  EXPECT_THAT(KnownOf(JobInInit("NCCL 2.30.7", {7, 8})), IsEmpty()) << "an older release";
  EXPECT_THAT(KnownOf(JobInInit("NCCL 2.32.3", {7, 8})), IsEmpty()) << "mended";
}

TEST(KnownHangs, WhatTheTracesDoNotSayFitsNothing) {
  EXPECT_THAT(KnownOf(JobInInit("", {7, 8})), IsEmpty()) << "no release";
  EXPECT_THAT(KnownOf(JobInInit("hostccl 2.31.2", {7, 8})), IsEmpty()) << "not NCCL";
  auto sections = JobInInit("NCCL 2.31.2", {7, 8});
  sections[3].library = "NCCL 2.30.7";
  EXPECT_THAT(KnownOf(sections), IsEmpty()) << "two releases";
  sections = JobInInit("NCCL 2.31.2", {7, 8});
  sections[3].host.clear();
  EXPECT_THAT(KnownOf(sections), IsEmpty()) << "a rank without its host";
  sections = JobInInit("NCCL 2.31.2", {7, 8});
  sections.pop_back();
  EXPECT_THAT(KnownOf(sections), IsEmpty()) << "a rank did not come: nobody needs a fault of NCCL";
}

TEST(KnownHangs, ARankThatSpinsInsideACall) {
  EXPECT_THAT(KnownOf(JobInCall("NCCL 2.28.9", 0)), ElementsAre("NVIDIA/nccl#2353"));
  EXPECT_THAT(KnownOf(JobInCall("NCCL 2.29.2", 3)), ElementsAre("NVIDIA/nccl#2353"));
  EXPECT_THAT(KnownOf(JobInCall("NCCL 2.29.3", 0)), IsEmpty()) << "mended";
  EXPECT_THAT(KnownOf(JobInCall("NCCL 2.28.9", 0, true)), IsEmpty()) << "no rank returned";
}

// If all ranks are in init, nothing differs between them. That must still give a finding.
TEST(KnownHangs, AllRanksInInitIsAFinding) {
  JobCalls job;
  for (const TraceSection& section : JobInInit("NCCL 2.30.7", {2, 2})) job.Add(section);
  const HangDiagnosis diagnosis = DiagnoseHang(job);
  ASSERT_EQ(diagnosis.findings.size(), 1u);
  EXPECT_EQ(diagnosis.findings.front().kind, HangKind::kInsideLibrary);
  EXPECT_EQ(diagnosis.findings.front().text.front(),
            "all 4 ranks came to make the communicator; ranks 0 to 3 did not return");
}

// A rank that is behind but inside this very communicator must not be called busy with something else.
TEST(KnownHangs, ARankInsideTheSameCommunicatorIsSaidToBeInside) {
  JobCalls job;
  for (const TraceSection& section : JobInCall("NCCL 2.30.7", 3)) job.Add(section);
  const HangDiagnosis diagnosis = DiagnoseHang(job);
  ASSERT_EQ(diagnosis.findings.front().kind, HangKind::kBehind);
  EXPECT_THAT(diagnosis.findings.front().text.back(),
              ::testing::HasSubstr("it is inside the last call that it issued"));
}

TEST(KnownHangs, AWrongPlaceInTheTableIsNamed) {
  const std::string table =
      R"({"schema": 1, "issues": [{"id": "a#1", "title": "t", "url": "u", "since": "2.28.9",
    "shows_as": ["end"], "where": "w", "stands_in": "bed"}]})";
  const auto known = ParseKnownIssues(table);
  ASSERT_FALSE(known);
  EXPECT_THAT(known.error().message, ::testing::HasSubstr("a#1"));
  EXPECT_THAT(known.error().message, ::testing::HasSubstr("'stands_in' is neither init nor call: 'bed'"));
}

}  // namespace
}  // namespace dynamiccl
