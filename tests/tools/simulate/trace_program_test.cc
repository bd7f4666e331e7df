// SPDX-License-Identifier: Apache-2.0
#include "tools/simulate/trace_program.h"

#include <gtest/gtest.h>

#include "tools/simulate/described_system.h"
#include "tools/simulate/framework_step.h"
#include "traces/generators/generated_trace.h"

namespace dynamiccl {
namespace {

Trace Generated(const char* framework, WorldShape world, const SettingTexts& settings) {
  const auto model = ParseModel("gpt:layers=3,hidden=64,vocabulary=512,sequence=32,tied_head=true");
  const auto run = GenerateRun(framework, *model, world, settings, 3);
  EXPECT_TRUE(run.has_value()) << (run ? "" : run.error().message);
  return run ? TraceOf(*run, 4) : Trace{};
}

// Checks that a simulated trace issues all operations of the trace, in order, on every rank.
void ExpectSameOperations(const Trace& trace) {
  const System system = SystemOf(DescribedSystems()[0]);
  const auto job = JobOfTrace(trace, system, {});
  ASSERT_TRUE(job.has_value()) << job.error().message;
  SimulationOptions options{.observed_ranks = {}};
  for (int32_t rank = 0; rank < job->job.n_ranks; ++rank) options.observed_ranks.push_back(rank);
  const auto result = Simulate(job->job, options);
  ASSERT_TRUE(result.has_value()) << result.error().message;
  for (size_t rank = 0; rank < trace.sections.size(); ++rank) {
    const SectionCalls simulated = SimulatedCalls(job->plans[rank], result->observed[rank]);
    const SectionCalls recorded = CallsOf(trace.sections[rank]);
    EXPECT_EQ(OperationHash(simulated), OperationHash(recorded));
    ASSERT_EQ(simulated.calls.size(), recorded.calls.size());
    for (size_t i = 0; i < recorded.calls.size(); ++i)
      ASSERT_EQ(simulated.calls[i].issued.call.bytes, recorded.calls[i].issued.call.bytes) << i;
  }
}

TEST(TraceProgram, SimulatesExactlyTheOperationsOfTheTrace) {
  ExpectSameOperations(Generated("fsdp2", {8, 1, 0}, {}));
  ExpectSameOperations(Generated("fsdp2", {8, 1, 4}, {}));
  ExpectSameOperations(Generated("megatron", {4, 2, 0}, {{"overlap_grad_reduce", "true"}}));
  ExpectSameOperations(Generated("llmc", {4, 1, 0}, {}));
  ExpectSameOperations(Generated("deepspeed3", {6, 1, 0}, {}));
}

// The calls are issued at 1 ms and 5 ms and take 2 ms each. The program therefore waited, computed for 2 ms,
// and waited again.
TEST(TraceProgram, WhatWasIssuedAfterAnEndHadWaitedForIt) {
  Trace trace = Generated("ddp", {2, 1, 0}, {});
  for (TraceSection& section : trace.sections) {
    section.flags &= ~static_cast<uint32_t>(kTraceOrderOnly);
    std::erase_if(section.records, [](const TraceRecord& record) {
      return record.kind == static_cast<uint16_t>(RecordKind::kStep);
    });
    int64_t calls = 0;
    std::vector<TraceRecord> kept;
    for (TraceRecord record : section.records) {
      if (record.kind == static_cast<uint16_t>(RecordKind::kCollective)) {
        if (++calls > 2) continue;
        record.issued_ns = calls == 1 ? 1'000'000 : 5'000'000;
        record.duration_ns = 2'000'000;
        record.duration_source = static_cast<uint8_t>(DurationSource::kStream);
      }
      Seal(record);
      kept.push_back(record);
    }
    section.records = kept;
  }
  const auto job = JobOfTrace(trace, SystemOf(DescribedSystems()[0]), {});
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(job->untimed, 0u);
  const auto result = Simulate(job->job);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->observed[0].compute_ns, 2'000'000);
  EXPECT_EQ(result->observed[0].stalled_ns, result->finished_ns - 2'000'000);
}

// A generated trace has no measured times, so gaps between its times are no computing.
TEST(TraceProgram, TimesThatWereNotMeasuredAreNoComputing) {
  const Trace trace = Generated("ddp", {4, 1, 0}, {});
  const System system = SystemOf(DescribedSystems()[0]);
  for (const int64_t stated : {0, 30'000'000}) {
    const auto job = JobOfTrace(trace, system, {.compute_ns = stated, .config = {}});
    ASSERT_TRUE(job.has_value()) << job.error().message;
    EXPECT_TRUE(job->order_only);
    const auto result = Simulate(job->job);
    ASSERT_TRUE(result.has_value());
    EXPECT_NEAR(static_cast<double>(result->observed[0].compute_ns), static_cast<double>(stated), 1e3);
  }
}

// The number of ranks is that of the file, unless the caller asks for another number.
TEST(TraceProgram, AMirroredTraceHasTheRanksThatItStates) {
  Trace trace = Generated("ddp", {8, 1, 0}, {});
  trace.sections.resize(1);
  const System system = SystemOf(DescribedSystems()[0]);
  const auto ranks = [&](int32_t asked) {
    const auto job = JobOfTrace(trace, system, {.ranks = asked, .config = {}});
    return job ? job->job.n_ranks : -1;
  };
  EXPECT_EQ(ranks(0), 8);
  EXPECT_EQ(ranks(4), 4);
  trace.sections[0].world = 0;
  EXPECT_EQ(ranks(0), 8) << "by the largest communicator";
  trace.sections[0].world = INT32_MAX;
  EXPECT_EQ(ranks(0), -1) << "more ranks than can be simulated";
}

// A group of unknown size would be simulated as one rank and take no time on any number of ranks.
TEST(TraceProgram, GroupsOfUnknownSizeAreRefused) {
  Trace trace = Generated("ddp", {1, 1, 0}, {});
  trace.sections[0].world = 0;
  const System system = SystemOf(DescribedSystems()[0]);
  const auto alone = JobOfTrace(trace, system, {.ranks = 8, .config = {}});
  ASSERT_TRUE(alone.has_value()) << alone.error().message;
  trace.sections[0].flags |= kTraceGroupsUnknown;
  const auto unknown = JobOfTrace(trace, system, {.ranks = 8, .config = {}});
  ASSERT_FALSE(unknown.has_value());
  EXPECT_NE(unknown.error().message.find("does not state how many ranks"), std::string::npos);
  EXPECT_NE(unknown.error().hint.find("--group-size"), std::string::npos);
  EXPECT_TRUE(JobOfTrace(trace, system, {.ranks = 1, .config = {}}).has_value());
}

// On idle links, a call that the program waits for at once takes the closed form's time.
TEST(TransferDemand, PutsTheClosedFormTogetherAgain) {
  for (const DescribedSystem& described : DescribedSystems()) {
    const System system = SystemOf(described);
    SystemDemands demands(system);
    for (const int nodes : {1, 2, 16}) {
      const int ranks = nodes * system.ranks_per_node;
      const CollectiveTimes times(system, ranks, nodes);
      for (const Collective collective : {Collective::kAllReduce, Collective::kAllGather,
                                          Collective::kReduceScatter, Collective::kBroadcast}) {
        for (uint64_t bytes = 1; bytes < uint64_t{1} << 34; bytes *= 7) {
          const auto demand = demands.Of(collective, bytes, {}, ranks, nodes);
          ASSERT_TRUE(demand.has_value());
          const double us = times.Microseconds(collective, bytes, {});
          EXPECT_NEAR(static_cast<double>(demand->latency_ns + demand->transfer_ns), us * 1e3, 1);
        }
      }
    }
  }
}

// Computed by hand: 7 of 8 parts of 8 MB are 7 MB on a port of 100 GB/s. Each of 4 ranks sends 4 parts of 1
// MB over a node's 25 GB/s.
TEST(TransferDemand, ExchangesAreMessagesToEveryOtherRank) {
  System system;
  system.ranks_per_node = system.network_ranks = 4;
  system.path(Algorithm::kRing, Protocol::kSimple) = {5, 1, 3, 100, 25, 0};
  SystemDemands demands(system);
  const auto expect = [&](Collective collective, int ranks, int nodes, const TransferDemand& expected) {
    const auto demand = demands.Of(collective, 8'000'000, {}, ranks, nodes);
    ASSERT_TRUE(demand.has_value()) << demand.error().message;
    EXPECT_EQ(demand->latency_ns, expected.latency_ns) << Name(collective) << " " << ranks;
    EXPECT_EQ(demand->transfer_ns, expected.transfer_ns) << Name(collective) << " " << ranks;
    EXPECT_DOUBLE_EQ(demand->port_bytes, expected.port_bytes) << Name(collective) << " " << ranks;
    EXPECT_DOUBLE_EQ(demand->network_bytes, expected.network_bytes) << Name(collective) << " " << ranks;
  };
  expect(Collective::kAllToAll, 4, 1, {5'000 + 3 * 1'000, 60'000, 6e6, 0});
  expect(Collective::kAllToAll, 8, 2, {5'000 + 3 * 1'000 + 4 * 3'000, 640'000, 7e6, 16e6});
  expect(Collective::kScatter, 8, 2, {20'000, 160'000, 7e6, 4e6});
  expect(Collective::kGather, 8, 2, {20'000, 160'000, 7e6, 4e6});
  // Two of a node's four ranks reach half of the node's network bandwidth.
  expect(Collective::kAllToAll, 4, 2, {5'000 + 1'000 + 2 * 3'000, 640'000, 6e6, 8e6});
  EXPECT_FALSE(SystemDemands(System()).Of(Collective::kAllToAll, 8, {}, 4, 1).has_value()) << "no path";
}

TEST(FrameworkStep, HidesGathersBehindComputing) {
  FrameworkStep step;
  step.model = *ParseModel("gpt:layers=24,hidden=2048");
  step.world = {64, 1, 0};
  step.forward_ms = 1000;
  const System system = SystemOf(DescribedSystems()[2]);
  const auto slow = JobOfFramework(step, system);
  ASSERT_TRUE(slow.has_value()) << slow.error().message;
  const auto hidden = Simulate(slow->job);
  ASSERT_TRUE(hidden.has_value());
  // Nothing can hide the first gather and the last reduction.
  EXPECT_LT(hidden->observed[0].stalled_ns, hidden->finished_ns / 50);
  EXPECT_NEAR(static_cast<double>(hidden->observed[0].compute_ns), 3e9, 1e8);
  step.forward_ms = 1;
  const auto exposed = Simulate(JobOfFramework(step, system)->job);
  EXPECT_GT(exposed->observed[0].stalled_ns, exposed->finished_ns / 2);
}

TEST(FrameworkStep, SaysWhatIsMissing) {
  FrameworkStep step;
  step.model = *ParseModel("resnet");
  EXPECT_FALSE(JobOfFramework(step, SystemOf(DescribedSystems()[0])).has_value());
}

}  // namespace
}  // namespace dynamiccl
