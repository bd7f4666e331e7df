// SPDX-License-Identifier: Apache-2.0
// Tests what the ledger and the metrics of whole jobs state: which calls a tuner could decide, which not, and
// why.
#include "tests/integration/job_fixture.h"
#include "traces/format/record_views.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl::testing {
namespace {

using ::testing::HasSubstr;

class CoverageOfJobs : public JobTest {
 protected:
  // Returns the calls of rank 0 by coverage, including sends and receives.
  std::array<int, kCoverages> CoverageIn(const JobResult& job) {
    std::array<int, kCoverages> calls{};
    const auto trace = ReadTrace(job.folder + "/t.0.ctrace");
    EXPECT_TRUE(trace) << job.AllOutput();
    if (!trace) return calls;
    for (const TraceRecord& record : trace->sections[0].records) {
      if (record.kind == static_cast<uint16_t>(RecordKind::kCollective) ||
          record.kind == static_cast<uint16_t>(RecordKind::kPointToPoint))
        ++calls[static_cast<size_t>(CoverageOf(record))];
    }
    return calls;
  }
  static int Of(const std::array<int, kCoverages>& calls, Coverage coverage) {
    return calls[static_cast<size_t>(coverage)];
  }
  // A round of the job has 4 sizes of 4 calls and a group of 2. With "peers", each rank also sends and
  // receives.
  static constexpr int kCollectivesARound = 18;
};

TEST_F(CoverageOfJobs, WithoutATunerCollectivesCountAsTunable) {
  const JobResult job = Run({.n_ranks = 2,
                             .rounds = "2",
                             .extras = {"peers"},
                             .environment = {{"DYNAMICCL_TRACE", "%d/t.%r.ctrace"}}});
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  const auto calls = CoverageIn(job);
  EXPECT_EQ(Of(calls, Coverage::kTunable), 2 * kCollectivesARound);
  EXPECT_GT(Of(calls, Coverage::kPointToPoint), 0);
  EXPECT_EQ(Of(calls, Coverage::kUnknown), 0);
}

TEST_F(CoverageOfJobs, WithATunerWhatItWasAskedAboutIsTunable) {
  const std::string policy = PolicyFile("p.dcpolicy", Algorithm::kRing, Protocol::kSimple);
  for (const char* emulate : {"2.30", "2.32"}) {
    const JobResult job = Run({.n_ranks = 3,
                               .rounds = "2",
                               .environment = {{"DYNAMICCL_POLICY", policy},
                                               {"HOSTCCL_EMULATE", emulate},
                                               {"DYNAMICCL_TRACE", "%d/t.%r.ctrace"},
                                               {"DYNAMICCL_METRICS", "%d/m.%r.prom"}}});
    ASSERT_TRUE(job.ok()) << job.AllOutput();
    EXPECT_EQ(Of(CoverageIn(job), Coverage::kTunable), 2 * kCollectivesARound) << emulate;
    const std::string metrics = job.Text("m.2.prom");
    EXPECT_THAT(metrics, HasSubstr("mode=\"frozen\"")) << job.AllOutput();
    EXPECT_THAT(
        metrics,
        HasSubstr("dynamiccl_calls_total{collective=\"AllGather\",coverage=\"tunable\",rank=\"2\"} 8\n"));
    EXPECT_THAT(metrics, HasSubstr("decided_by=\"policy\",rank=\"2\"}"));
    EXPECT_THAT(metrics, HasSubstr("config=\"Ring/Simple/"));
  }
}

TEST_F(CoverageOfJobs, WhatTheUserPinnedIsTheUsers) {
  const JobResult job = Run({.n_ranks = 2,
                             .rounds = "1",
                             .environment = {{"NCCL_ALGO", "Ring"}, {"DYNAMICCL_TRACE", "%d/t.%r.ctrace"}}});
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  EXPECT_EQ(Of(CoverageIn(job), Coverage::kPinned), kCollectivesARound);
}

// NCCL makes the communicators of a group even if the end of the group is only simulated.
TEST_F(CoverageOfJobs, CommunicatorOfASimulatedGroupIsKnownFromItsFirstCall) {
  const JobResult job = Run({.n_ranks = 2,
                             .rounds = "1",
                             .extras = {"simulated"},
                             .environment = {{"DYNAMICCL_TRACE", "%d/t.%r.ctrace"}}});
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  EXPECT_EQ(Of(CoverageIn(job), Coverage::kTunable), kCollectivesARound);
}

TEST_F(CoverageOfJobs, OneRankHasNothingToChoose) {
  const JobResult job =
      Run({.n_ranks = 1, .rounds = "1", .environment = {{"DYNAMICCL_TRACE", "%d/t.%r.ctrace"}}});
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  EXPECT_EQ(Of(CoverageIn(job), Coverage::kSingleConfig), kCollectivesARound);
}

TEST_F(CoverageOfJobs, MetricsAloneMakeTheObjectObserve) {
  const JobResult job =
      Run({.n_ranks = 2, .rounds = "1", .environment = {{"DYNAMICCL_METRICS", "%d/m.%r.prom"}}});
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  EXPECT_THAT(job.Text("m.0.prom"), HasSubstr("mode=\"observe\""));
  EXPECT_THAT(job.Text("m.1.prom"),
              HasSubstr("dynamiccl_calls_total{collective=\"AllReduce\",coverage=\"tunable\",rank=\"1\"}"));
}

TEST_F(CoverageOfJobs, MemoryThatTheProgramTellsOfIsInMetricsAndTrace) {
  const JobResult job = Run({.n_ranks = 2,
                             .rounds = "3",
                             .environment = {{"DYNAMICCL_METRICS", "%d/m.%r.prom"},
                                             {"DYNAMICCL_LOG", "info"},
                                             {"DYNAMICCL_TRACE", "%d/t.%r.ctrace"}}});
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  EXPECT_THAT(job.Text("m.1.prom"), HasSubstr("dynamiccl_memory_pressure{rank=\"1\"} 2\n"));
  EXPECT_EQ(LinesWith(job.output[0], "memory pressure is high: 4096 of 81920 MiB are free").size(), 1u);
  const auto trace = ReadTrace(job.folder + "/t.0.ctrace");
  ASSERT_TRUE(trace);
  const auto is_memory = [](const TraceRecord& record) {
    return record.kind == static_cast<uint16_t>(RecordKind::kMemory);
  };
  const auto& records = trace->sections[0].records;
  EXPECT_EQ(std::count_if(records.begin(), records.end(), is_memory), 3);
}

TEST_F(CoverageOfJobs, FilesGetTheFolderThatIsMissing) {
  const JobResult job = Run({.n_ranks = 2,
                             .rounds = "1",
                             .environment = {{"DYNAMICCL_TRACE", "%d/traces/%r.ctrace"},
                                             {"DYNAMICCL_METRICS", "%d/metrics/%r.prom"},
                                             {"DYNAMICCL_DECISION_LOG", "%d/logs/%r.log"},
                                             {"DYNAMICCL_MODE", "adaptive"}}});
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  for (const char* const file : {"traces/1.ctrace", "metrics/1.prom", "logs/1.log"})
    EXPECT_NE(job.Text(file), "") << file << "\n" << job.AllOutput();
}

TEST_F(CoverageOfJobs, AFileThatCannotBeWrittenIsSaidOnceAndHarmsNothing) {
  const JobResult job =
      Run({.n_ranks = 2, .rounds = "1", .environment = {{"DYNAMICCL_METRICS", "%d/none/none/m.prom"}}});
  EXPECT_TRUE(job.ok());
  EXPECT_EQ(LinesWith(job.output[0], "metrics cannot be written").size(), 1u) << job.AllOutput();
}

}  // namespace
}  // namespace dynamiccl::testing
