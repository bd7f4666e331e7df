// SPDX-License-Identifier: Apache-2.0
#include "src/simulator/event_simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/src/simulator/jobs.h"

namespace dynamiccl {
namespace {

constexpr TransferDemand kTransfer{
    .latency_ns = 50, .transfer_ns = 1000, .port_bytes = 10000, .network_bytes = 10000};

SimulationResult Simulated(const SimulatedJob& job, const SimulationOptions& options = {}) {
  const auto result = Simulate(job, options);
  EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().message);
  return result ? *result : SimulationResult{};
}

std::vector<int32_t> AllRanks(const SimulatedJob& job) {
  std::vector<int32_t> ranks;
  for (int32_t rank = 0; rank < job.n_ranks; ++rank) ranks.push_back(rank);
  return ranks;
}

// On idle links every collective takes exactly its time alone.
TEST(EventSimulation, IdleFabricGivesTheClosedForm) {
  RankProgram program{{{0, kTransfer}, {0, {.latency_ns = 7, .transfer_ns = 13}}}, {}};
  program.actions = {Compute(100), Issue(0), Wait(0), Compute(40), Issue(1), Wait(1)};
  const SimulationResult result = Simulated(JobOfAll(8, 4, program));
  EXPECT_EQ(result.finished_ns, 100 + 1050 + 40 + 20);
  EXPECT_EQ(result.observed[0].compute_ns, 140);
  EXPECT_EQ(result.observed[0].stalled_ns, 1070);
}

TEST(EventSimulation, ComputeHidesWhatRunsBesideIt) {
  RankProgram program{{{0, kTransfer}}, {Issue(0), Compute(800), Wait(0)}};
  EXPECT_EQ(Simulated(JobOfAll(2, 1, program)).observed[0].stalled_ns, 250);
  program.actions[1] = Compute(2000);
  const SimulationResult hidden = Simulated(JobOfAll(2, 1, program));
  EXPECT_EQ(hidden.observed[0].stalled_ns, 0);
  EXPECT_EQ(hidden.finished_ns, 2000);
}

// Two communicators of equal ranks share one node's network. Each alone is as fast as the network.
TEST(EventSimulation, TwoEqualTransfersOnOneLinkTakeTwiceAsLong) {
  const RankProgram program{{{0, kTransfer}}, {Issue(0), Wait(0)}};
  SimulatedJob job = JobOfAll(4, 2, program);
  job.layouts = {Across(4, 2)};
  EXPECT_EQ(Simulated(job).finished_ns, 50 + 2000);
  job.network_gbps = 20;
  EXPECT_EQ(Simulated(job).finished_ns, 50 + 1000);
}

TEST(EventSimulation, ACommunicatorRunsItsCollectivesInOrder) {
  RankProgram program{{{0, kTransfer}, {0, kTransfer}}, {Issue(0), Issue(1), Wait(1)}};
  const SimulationResult result = Simulated(JobOfAll(2, 1, program));
  EXPECT_EQ(result.observed[0].collectives[1].started_ns, 1050);
  EXPECT_EQ(result.finished_ns, 2100);
}

// Returns a job with two communicators, one of neighbours and one across. The links are fast enough for both
// to transfer at once.
SimulatedJob JobOfTwoLayouts(RankProgram program) {
  SimulatedJob job = JobOfAll(4, 4, std::move(program), 100, 40);
  job.layouts = {Neighbours(4, 2), Across(4, 2)};
  return job;
}

TEST(EventSimulation, ACollectiveThatNeedsAnothersResultBeginsAtItsEnd) {
  RankProgram program{{{0, kTransfer}, {1, kTransfer}}, {Issue(0), Issue(1), Compute(500), Wait(1)}};
  EXPECT_EQ(Simulated(JobOfTwoLayouts(program)).observed[0].collectives[1].started_ns, 0);
  program.collectives[1].after = 0;
  const SimulationResult result = Simulated(JobOfTwoLayouts(program));
  EXPECT_EQ(result.observed[0].collectives[1].started_ns, 1050);
  EXPECT_EQ(result.observed[0].stalled_ns, 2100 - 500);
  EXPECT_EQ(result.finished_ns, 2100);
  // A collective issued after the other has ended begins at once.
  program.actions = {Issue(0), Compute(5000), Issue(1), Wait(1)};
  EXPECT_EQ(Simulated(JobOfTwoLayouts(program)).finished_ns, 5000 + 1050);
}

// A rank that waits for each collective before it issues the next one needs the same time.
TEST(EventSimulation, ChainsOfResultsTakeTheSumOfTheirTimes) {
  RankProgram waits{{}, {}}, chain{{}, {}};
  for (int64_t i = 0; i < 6; ++i) {
    const SimulatedCollective one{static_cast<size_t>(i % 2), {.latency_ns = 10 * i, .transfer_ns = 100}};
    waits.collectives.push_back(one);
    waits.actions.insert(waits.actions.end(), {Issue(i), Wait(i)});
    chain.collectives.push_back(After(i - 1, one));
    chain.actions.push_back(Issue(i));
  }
  const SimulationResult result = Simulated(JobOfTwoLayouts(chain));
  EXPECT_EQ(result.finished_ns, Simulated(JobOfTwoLayouts(waits)).finished_ns);
  EXPECT_EQ(result.observed[0].stalled_ns, 0);
}

TEST(EventSimulation, RefusesResultsOfLaterCollectives) {
  RankProgram program{{After(1, {0, kTransfer}), {0, kTransfer}}, {Issue(0), Issue(1)}};
  EXPECT_FALSE(Simulate(JobOfAll(2, 1, program)).has_value());
  program.collectives = {{0, kTransfer}, After(0, {1, kTransfer})};
  program.actions = {Issue(1), Issue(0)};
  const auto result = Simulate(JobOfTwoLayouts(program));
  ASSERT_FALSE(result.has_value());
  EXPECT_THAT(result.error().message, ::testing::HasSubstr("issued before collective 0"));
}

TEST(EventSimulation, BytesAreConserved) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SimulatedJob job = JobOfAll(24, 4, RandomProgram(seed, 2, 30));
    job.layouts = {Neighbours(24, 8), Across(24, 8)};
    double port = 0, network = 0;
    for (const SimulatedCollective& collective : job.programs[0].collectives) {
      port += 24 * collective.demand.port_bytes;
      // There are 3 communicators on 2 nodes each, and 8 on 3 nodes each.
      network += (collective.layout == 0 ? 3 * 2 : 8 * 3) * collective.demand.network_bytes;
    }
    const SimulationResult result = Simulated(job);
    EXPECT_NEAR(result.port_bytes, port, 1e-9 * port) << "seed " << seed;
    EXPECT_NEAR(result.network_bytes, network, 1e-9 * network) << "seed " << seed;
    EXPECT_EQ(result.collectives, Simulated(job, {.ranks_apart = true}).collectives);
  }
}

// The closed form may give a transfer less time than its port or network needs for its bytes.
TEST(EventSimulation, BytesOfATransferThatIsFasterThanItsLinksAreAllCounted) {
  const RankProgram program{{{0, kTransfer}}, {Issue(0), Wait(0)}};
  const SimulationResult result = Simulated(JobOfAll(4, 2, program, 5, 5));
  EXPECT_EQ(result.finished_ns, 50 + 1000);
  EXPECT_DOUBLE_EQ(result.port_bytes, 4 * kTransfer.port_bytes);
  EXPECT_DOUBLE_EQ(result.network_bytes, 2 * kTransfer.network_bytes);
}

// If one rank is late or slower by t and all later wait for all ranks, the job takes exactly t longer.
TEST(EventSimulation, AStragglerDelaysByItsAmount) {
  RankProgram program{{{0, kTransfer}, {0, kTransfer}},
                      {Compute(500), Issue(0), Wait(0), Compute(300), Issue(1), Wait(1)}};
  SimulatedJob job = JobOfAll(512, 8, program);
  const int64_t before = Simulated(job).finished_ns;
  job.stragglers = {{.rank = 77, .late_ns = 12345}};
  EXPECT_EQ(Simulated(job).finished_ns, before + 12345);
  job.stragglers = {{.rank = 77, .compute_factor = 3}};
  EXPECT_EQ(Simulated(job).finished_ns, before + 2 * (500 + 300));
  const SimulationResult observed = Simulated(job, {.observed_ranks = {0, 77}});
  EXPECT_EQ(observed.observed[0].stalled_ns, observed.observed[1].stalled_ns + 1600);
}

// Simulating equal ranks together must give the same times as simulating every rank separately.
TEST(EventSimulation, ClassesOfRanksChangeNoTime) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SimulatedJob job = JobOfAll(24, 4, RandomProgram(seed, 2, 25));
    job.layouts = {Neighbours(24, seed % 2 == 0 ? 4 : 8), Across(24, seed % 3 == 0 ? 4 : 12)};
    if (seed % 4 == 1) job.stragglers = {{.rank = static_cast<int32_t>(seed % 24), .compute_factor = 1.5}};
    if (seed % 4 == 2) job.loads = {{.from_ns = 3000, .until_ns = 30000, .node = 2, .share = 0.7}};
    if (seed % 4 == 3) job.loads = {{.share = 0.5}};
    const SimulationResult together = Simulated(job, {.observed_ranks = AllRanks(job)});
    const SimulationResult apart = Simulated(job, {.observed_ranks = AllRanks(job), .ranks_apart = true});
    EXPECT_LE(together.rank_classes, apart.rank_classes);
    // Shared speeds are rounded by at most 1 ns per change of speed.
    for (size_t rank = 0; rank < 24; ++rank) {
      ASSERT_NEAR(static_cast<double>(together.observed[rank].finished_ns),
                  static_cast<double>(apart.observed[rank].finished_ns), 100)
          << "seed " << seed << " rank " << rank;
    }
  }
}

TEST(EventSimulation, SameSeedSameResult) {
  SimulatedJob job = JobOfAll(64, 8, RandomProgram(3, 1, 40));
  job.compute_jitter = 0.2;
  const int64_t first = Simulated(job).finished_ns;
  EXPECT_EQ(Simulated(job).finished_ns, first);
  EXPECT_EQ(Simulated(job).rank_classes, 64u);
  job.seed = 2;
  EXPECT_NE(Simulated(job).finished_ns, first);
}

// A call in flight leaves 0.8 of a core to the rank.
TEST(EventSimulation, ACallInFlightTakesItsShareOfTheHost) {
  RankProgram program;
  program.collectives = {{0, {.latency_ns = 100, .transfer_ns = 900}}};
  program.actions = {Issue(0), Compute(5000), Wait(0)};
  SimulatedJob job = JobOfAll(2, 1, program);
  EXPECT_EQ(Simulated(job).finished_ns, 5000);
  job.host_share = 0.2;
  EXPECT_EQ(Simulated(job).finished_ns, 5200);
  // While the rank computes, the call takes one fifth of 500. After the rank has waited for it, it takes
  // nothing.
  job.programs[0].actions = {Issue(0), Compute(400), Wait(0), Compute(1000)};
  EXPECT_EQ(Simulated(job).observed[0].stalled_ns, 500);
  EXPECT_EQ(Simulated(job).finished_ns, 2000);
  job.host_share = 1;
  EXPECT_FALSE(Simulate(job));
}

// A wait for one communicator's call does not end another communicator's call, whatever the order of issue.
TEST(EventSimulation, ACallOfAnotherCommunicatorStillTakesItsShareOfTheHost) {
  for (const bool long_one_first : {false, true}) {
    const SimulatedCollective short_one{0, {.latency_ns = 0, .transfer_ns = 1000}},
        long_one{1, {.latency_ns = 0, .transfer_ns = 10000}};
    RankProgram program;
    program.collectives = {short_one, long_one};
    if (long_one_first) std::swap(program.collectives[0], program.collectives[1]);
    const int64_t of_short = long_one_first ? 1 : 0;
    program.actions = {Issue(0), Issue(1), Wait(of_short), Compute(20000), Wait(1 - of_short)};
    SimulatedJob job = JobOfAll(2, 1, program);
    job.layouts.push_back(job.layouts[0]);
    job.host_share = 0.2;
    EXPECT_EQ(Simulated(job).finished_ns, 1000 + 20000 + 2000) << "long one first: " << long_one_first;
  }
}

// Without a limit, slowdowns can give times beyond 64 bits and jobs that end before they begin.
TEST(EventSimulation, SlowdownsAreLimited) {
  SimulatedJob job = JobOfAll(4, 2, {{{0, kTransfer}}, {Issue(0), Compute(1'000'000'000), Wait(0)}});
  job.loads = {{.share = 0.999999}};
  job.stragglers = {{.rank = 1, .compute_factor = 1e6}};
  job.compute_jitter = 1;
  EXPECT_GT(Simulated(job).finished_ns, 999'000'000'000'000);
  SimulatedJob loaded = job, slow = job, jittery = job;
  loaded.loads[0].share = 1 - 1e-16;
  slow.stragglers[0].compute_factor = 1e300;
  jittery.compute_jitter = 1e30;
  for (const SimulatedJob& each : {loaded, slow, jittery}) EXPECT_FALSE(Simulate(each));
}

TEST(EventSimulation, MoreBandwidthIsNeverSlowerWhereAllWaitForAll) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SimulatedJob job = JobOfAll(16, 4, RandomProgram(seed, 1, 30));
    job.layouts = {Across(16, 4)};
    int64_t before = INT64_MAX;
    for (const double gbps : {4.0, 8.0, 12.0, 20.0, 40.0, 400.0}) {
      job.network_gbps = gbps;
      // If a narrow network could not carry a demand alone, the demand would be another collective.
      SimulatedJob fitting = job;
      for (SimulatedCollective& collective : fitting.programs[0].collectives) {
        const auto bytes = static_cast<int64_t>(collective.demand.network_bytes);
        collective.demand.transfer_ns =
            std::max(collective.demand.transfer_ns, bytes / static_cast<int64_t>(gbps) + 1);
      }
      const int64_t now = Simulated(fitting).finished_ns;
      EXPECT_LE(now, before) << "seed " << seed << " at " << gbps;
      before = now;
    }
  }
}

TEST(EventSimulation, LoadSlowsWhileItLasts) {
  const RankProgram program{{{0, kTransfer}}, {Issue(0), Wait(0)}};
  SimulatedJob job = JobOfAll(4, 1, program);
  job.loads = {{.from_ns = 250, .until_ns = 650, .node = 3, .share = 0.5}};
  EXPECT_EQ(Simulated(job).finished_ns, 1050 + 200);
  job.loads = {{.from_ns = 5000, .share = 0.5}};
  EXPECT_EQ(Simulated(job).finished_ns, 1050);
}

TEST(EventSimulation, WhatCannotEndIsAnErrorThatSaysSo) {
  SimulatedJob job = JobOfAll(2, 1, {{{0, kTransfer}}, {Issue(0), Wait(0)}});
  job.programs.push_back({});
  job.program_of_rank = {0, 1};
  EXPECT_THAT(Simulate(job).error().message, ::testing::HasSubstr("hangs"));
  job.programs[1] = {{{0, {.transfer_ns = 5}}}, {Issue(0), Wait(0)}};
  EXPECT_THAT(Simulate(job).error().message, ::testing::HasSubstr("not what another rank"));
}

TEST(EventSimulation, WrongJobsAreRefused) {
  const auto refused = [](auto change) {
    SimulatedJob job = JobOfAll(4, 2, {{{0, kTransfer}}, {Issue(0), Wait(0)}});
    change(job);
    return !Simulate(job).has_value();
  };
  EXPECT_FALSE(refused([](SimulatedJob&) {}));
  EXPECT_TRUE(refused([](SimulatedJob& job) { job.n_ranks = 0; }));
  EXPECT_TRUE(refused([](SimulatedJob& job) { job.port_gbps = 0; }));
  EXPECT_TRUE(refused([](SimulatedJob& job) { job.programs.clear(); }));
  EXPECT_TRUE(refused([](SimulatedJob& job) { job.layouts.clear(); }));
  EXPECT_TRUE(refused([](SimulatedJob& job) { job.layouts[0].communicator_of_rank[1] = -1; }));
  EXPECT_TRUE(refused([](SimulatedJob& job) { job.programs[0].actions = {Wait(0), Issue(0)}; }));
  EXPECT_TRUE(refused([](SimulatedJob& job) { job.programs[0].actions = {}; }));
  EXPECT_TRUE(refused([](SimulatedJob& job) { job.programs[0].actions.push_back(Issue(0)); }));
  EXPECT_TRUE(refused([](SimulatedJob& job) { job.programs[0].actions.push_back(Compute(-1)); }));
  EXPECT_TRUE(refused([](SimulatedJob& job) { job.programs[0].collectives[0].demand.transfer_ns = -1; }));
  EXPECT_TRUE(refused([](SimulatedJob& job) { job.stragglers = {{.rank = 4}}; }));
  EXPECT_TRUE(refused([](SimulatedJob& job) { job.loads = {{.share = 1}}; }));
}

}  // namespace
}  // namespace dynamiccl
