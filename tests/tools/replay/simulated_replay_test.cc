// SPDX-License-Identifier: Apache-2.0
#include "tools/replay/simulated_replay.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "tests/support/sample_policy.h"
#include "tests/traces/any_trace.h"
#include "traces/generators/generated_trace.h"

namespace dynamiccl {
namespace {

constexpr int kRanks = 4;

// Returns a job whose ranks issue the same random groups on the communicator of all ranks and on pairs.
Trace RandomJob(uint64_t seed) {
  Trace trace;
  for (int32_t rank = 0; rank < kRanks; ++rank) {
    std::mt19937_64 random(seed);
    SectionBuilder builder(rank, kRanks);
    builder.Add(CommunicatorRecord(
        1, {.id = 100u + static_cast<uint64_t>(rank / 2), .rank = rank % 2, .n_ranks = 2, .n_nodes = 1}, 0));
    uint64_t next_call[2] = {};
    for (int group = 0; group < 40; ++group) {
      const auto communicator = static_cast<uint32_t>(random() % 2);
      const auto size = static_cast<uint16_t>(1 + random() % 3);
      for (uint16_t i = 0; i < size; ++i) {
        IssuedCall issued;
        issued.call.call_number = next_call[communicator];
        issued.call.index_in_group = i;
        issued.call.group_size = size;
        issued.call.collective = static_cast<Collective>(random() % kTunableCollectives);
        issued.call.bytes = 64u << random() % 20;
        builder.Add(CallRecord(communicator, issued));
      }
      ++next_call[communicator];
    }
    trace.sections.push_back(builder.section());
  }
  return trace;
}

NamedSystem Dgx() {
  return *FindSystem("dgx-a100");
}

std::vector<uint64_t> RecordedOperations(const Trace& trace) {
  std::vector<uint64_t> hashes;
  for (const TraceSection& section : trace.sections) hashes.push_back(OperationHash(CallsOf(section)));
  return hashes;
}

TEST(SimulatedReplay, IssuesExactlyWhatWasRecordedAtEverySpeedAndWithEveryChoice) {
  const NamedSystem system = Dgx();
  const Choosers tree{nullptr, test::MakePolicyThatPrefers(Algorithm::kTree, Protocol::kSimple)};
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Trace trace = RandomJob(seed);
    for (const bool paced : {false, true}) {
      for (const ConfigOnSystem& config :
           {DecidedOn(system.system, {}), DecidedOn(system.system, tree), CheapestOn(system.system)}) {
        const auto replay = ReplayInSimulator(trace, system, {.paced = paced, .config = config});
        ASSERT_TRUE(replay.has_value()) << replay.error().message;
        EXPECT_EQ(replay->operations, RecordedOperations(trace)) << "seed " << seed;
      }
    }
  }
}

TEST(SimulatedReplay, AnyChangeOfAnyCallChangesTheHash) {
  const NamedSystem system = Dgx();
  std::mt19937_64 random(9);
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const Trace trace = RandomJob(seed);
    const auto before = ReplayInSimulator(trace, system, {.paced = false});
    ASSERT_TRUE(before.has_value());
    Trace changed = trace;
    const size_t which = 2 + random() % (trace.sections[0].records.size() - 2);
    for (TraceSection& section : changed.sections) {
      TraceRecord& record = section.records[which];
      if (seed % 3 == 0) record.bytes *= 2;
      if (seed % 3 == 1) record.data_type = static_cast<uint8_t>(DataType::kUint8);
      if (seed % 3 == 2)
        record.collective = static_cast<uint8_t>((record.collective + 1) % kTunableCollectives);
      Seal(record);
    }
    const auto after = ReplayInSimulator(changed, system, {.paced = false});
    ASSERT_TRUE(after.has_value()) << after.error().message;
    EXPECT_NE(after->operations[0], before->operations[0]) << "seed " << seed;
  }
}

TEST(SimulatedReplay, AWindowIssuesThePlanOfThatWindow) {
  const Trace trace = RandomJob(3);
  const ReplayWindow window{.first = 10, .count = 25};
  const auto replay = ReplayInSimulator(trace, Dgx(), {.window = window});
  ASSERT_TRUE(replay.has_value());
  for (int32_t rank = 0; rank < kRanks; ++rank) {
    const auto plan = PlanReplay(trace, rank, kRanks, window);
    EXPECT_EQ(replay->operations[static_cast<size_t>(rank)], OperationHash(*plan));
  }
  EXPECT_NE(replay->operations, RecordedOperations(trace));
}

// One communicator runs at full speed. Its groups follow each other without a gap, so their times add up to
// the whole.
TEST(SimulatedReplay, GroupsOfOneCommunicatorFillTheTime) {
  Trace trace;
  for (int32_t rank = 0; rank < 2; ++rank) {
    SectionBuilder builder(rank, 2);
    for (uint64_t call = 0; call < 30; ++call) builder.Call(call, Collective::kAllReduce, 1u << (call % 24));
    trace.sections.push_back(builder.section());
  }
  const auto replay = ReplayInSimulator(trace, Dgx(), {.paced = false});
  ASSERT_TRUE(replay.has_value());
  EXPECT_NEAR(std::accumulate(replay->group_us.begin(), replay->group_us.end(), 0.0), replay->wall_us, 1e-6);
}

// A config that a rule forces runs and takes the closed form's time. Where no rule or policy decides, NCCL
// chooses.
TEST(ConfigOnSystem, RulesWinOverThePolicyAndThePolicyOverNccl) {
  const NamedSystem system = Dgx();
  const auto rules = OverrideRules::Parse("allreduce,0,1023,ring,ll128,-1,-1,-1\n", "test.csv");
  ASSERT_TRUE(rules.has_value()) << rules.error().message;
  const Choosers all{std::make_shared<const OverrideRules>(*rules),
                     test::MakePolicyThatPrefers(Algorithm::kTree, Protocol::kSimple)};
  const ConfigOnSystem config = DecidedOn(system.system, all);
  const CollectiveConfig ruled = config({Collective::kAllReduce, 512, 16, 2});
  EXPECT_EQ(ruled.algorithm, Algorithm::kRing);
  EXPECT_EQ(ruled.protocol, Protocol::kLL128);
  const CollectiveConfig promised = config({Collective::kAllReduce, 1 << 20, 16, 2});
  EXPECT_EQ(promised.algorithm, Algorithm::kTree);
  EXPECT_EQ(promised.protocol, Protocol::kSimple);
  // Broadcast has no tree.
  const CollectiveConfig left = config({Collective::kBroadcast, 1 << 20, 16, 2});
  EXPECT_EQ(left, DecidedOn(system.system, {})({Collective::kBroadcast, 1 << 20, 16, 2}));
  EXPECT_EQ(config({Collective::kSendRecv, 1 << 20, 16, 2}), kLeaveNcclAlone);
}

TEST(ConfigOnSystem, NothingBeatsTheCheapest) {
  const NamedSystem system = Dgx();
  const ConfigOnSystem best = CheapestOn(system.system), nccl = DecidedOn(system.system, {});
  for (const int ranks : {2, 8, 64}) {
    const CollectiveTimes times(system.system, ranks);
    for (int c = 0; c < kTunableCollectives; ++c) {
      for (uint64_t bytes = 64; bytes <= 1u << 30; bytes *= 8) {
        const CallOnSystem call{static_cast<Collective>(c), bytes, ranks, system.system.NodesFor(ranks)};
        EXPECT_LE(times.Microseconds(call.collective, bytes, best(call)),
                  times.Microseconds(call.collective, bytes, nccl(call)) * (1 + 1e-12));
      }
    }
  }
}

}  // namespace
}  // namespace dynamiccl
