// SPDX-License-Identifier: Apache-2.0
// Compares the generator `dynamiccl-zero` with recorded calls of the trainer over hostccl. Every call must
// agree, with its communicator and its labels.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "tests/zero_workloads/rank_processes.h"
#include "traces/format/trace_calls.h"
#include "traces/format/trace_reader.h"
#include "traces/generators/framework_generator.h"

namespace dynamiccl::zero {
namespace {

using Arguments = std::vector<std::string>;

constexpr int kSteps = 3;

// The small model of these tests, with its buckets of 64 KiB.
constexpr const char* kModel = "gpt:layers={},hidden=64,sequence=32,vocabulary=256,head_bias=true";

// Who starts the ranks: `dynamiccl zero --trace`, or the test. The test forks them from a program that has
// already loaded LibTorch and the object, which takes a third of the time.
enum class StartedBy { kCommand, kTest };

struct Case {
  WorldShape world;
  Arguments options;
  SettingTexts settings;
  int layers = 2;
  StartedBy started_by = StartedBy::kTest;
};

void Record(const Case& one, const Arguments& words, const TemporaryFolder& folder) {
  const std::string traces = (folder / "rank.%r.ctrace").string();
  if (one.started_by == StartedBy::kTest) {
    const Launch launch{.ranks = one.world.Ranks(),
                        .arguments = words,
                        .environment = {{"DYNAMICCL_MODE", "observe"}, {"DYNAMICCL_TRACE", traces}},
                        .preload = DYNAMICCL_TEST_PRELOAD};
    for (const RankOutcome& rank : RunRanks(launch)) EXPECT_EQ(rank.exit_code, 0) << rank.output;
    return;
  }
  const std::string command =
      fmt::format("{} zero -n {} --trace {} {} > {} 2>&1", DYNAMICCL_PROGRAM, one.world.Ranks(), traces,
                  fmt::join(words, " "), (folder / "log").string());
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
}

// Returns the recorded calls of rank 0 and of the last rank.
std::vector<SectionCalls> Recorded(const Case& one) {
  const TemporaryFolder folder;
  Arguments words = SmallModel();
  *(std::find(words.begin(), words.end(), "--steps") + 1) = std::to_string(kSteps);
  *(std::find(words.begin(), words.end(), "--layers") + 1) = std::to_string(one.layers);
  words.insert(words.end(), one.options.begin(), one.options.end());
  Record(one, words, folder);
  std::vector<SectionCalls> sections;
  for (const int rank : {0, one.world.Ranks() - 1}) {
    const auto trace = ReadTrace((folder / fmt::format("rank.{}.ctrace", rank)).string());
    if (!trace) {
      ADD_FAILURE() << trace.error().message;
      continue;
    }
    sections.push_back(CallsOf(trace->sections.at(0)));
  }
  return sections;
}

void ExpectSame(const TraceCall& recorded, const WireOperation& generated, const GeneratedRun& run,
                const SectionCalls& section) {
  const IssuedCall& issued = recorded.issued;
  EXPECT_EQ(issued.call.collective, generated.collective);
  EXPECT_EQ(issued.call.bytes, generated.Bytes());
  EXPECT_EQ(issued.call.data_type, generated.data_type);
  EXPECT_EQ(issued.labelled_role, generated.role);
  EXPECT_EQ(issued.labelled_phase, generated.phase);
  EXPECT_EQ(issued.labelled_stage, run.stage);
  EXPECT_EQ(section.communicators.at(recorded.communicator).n_ranks, run.world.RanksOn(generated.axis));
  if (generated.root >= 0) {
    EXPECT_EQ(issued.root_or_peer, generated.root);
  }
  const bool sums =
      generated.collective != Collective::kAllGather && generated.collective != Collective::kBroadcast;
  if (sums) {
    EXPECT_EQ(issued.call.op, generated.op);
  }
}

// After the last step's calls, the section has the calls of the digest at the end of the run.
void ExpectSame(const SectionCalls& section, const GeneratedRun& run) {
  std::map<Axis, uint32_t> communicators;
  auto recorded = section.calls.begin();
  for (size_t step = 0; step < run.steps.size(); ++step) {
    for (size_t i = 0; i < run.steps[step].size(); ++i, ++recorded) {
      SCOPED_TRACE(fmt::format("step {}, call {}", step, i));
      ASSERT_NE(recorded, section.calls.end());
      const WireOperation& operation = run.steps[step][i];
      ExpectSame(*recorded, operation, run, section);
      EXPECT_EQ(communicators.emplace(operation.axis, recorded->communicator).first->second,
                recorded->communicator);
      if (::testing::Test::HasFailure()) return;
    }
  }
  std::set<uint32_t> numbers;
  for (const auto& [axis, number] : communicators) numbers.insert(number);
  EXPECT_EQ(numbers.size(), communicators.size());
}

void ExpectRecorded(const Case& one) {
  SCOPED_TRACE(fmt::format("{} ranks {}", one.world.Ranks(), fmt::join(one.options, " ")));
  const auto model = ParseModel(fmt::format(fmt::runtime(kModel), one.layers));
  ASSERT_TRUE(model) << model.error().message;
  SettingTexts settings = one.settings;
  settings["bucket_bytes"] = "65536";
  const auto run = GenerateRun("dynamiccl-zero", *model, one.world, settings, kSteps);
  ASSERT_TRUE(run) << run.error().message;
  for (const SectionCalls& section : Recorded(one)) ExpectSame(section, *run);
}

TEST(RecordedCalls, StagesAndWorlds) {
  for (const char* stage : {"0", "1", "2", "3"}) {
    for (const int ranks : {1, 2, 3})
      ExpectRecorded({{.data = ranks}, {"--stage", stage}, {{"stage", stage}}, 2, StartedBy::kCommand});
  }
}

TEST(RecordedCalls, MicroSteps) {
  for (const char* stage : {"1", "2", "3"}) {
    ExpectRecorded({{.data = 2},
                    {"--stage", stage, "--micro-steps", "2", "--dtype", "bf16"},
                    {{"stage", stage}, {"micro_steps", "2"}, {"dtype", "bfloat16"}}});
  }
  ExpectRecorded({{.data = 2},
                  {"--stage", "3", "--micro-steps", "2", "--accumulation", "local", "--no-prefetch"},
                  {{"stage", "3"}, {"micro_steps", "2"}, {"accumulation", "local"}, {"prefetch", "false"}}});
}

TEST(RecordedCalls, ExchangesUnitsAndTypes) {
  for (const char* stage : {"1", "3"}) {
    ExpectRecorded(
        {{.data = 3}, {"--stage", stage, "--exchange", "owner"}, {{"stage", stage}, {"exchange", "owner"}}});
    ExpectRecorded({{.data = 2},
                    {"--stage", stage, "--unit", "parameter", "--no-overlap"},
                    {{"stage", stage}, {"unit", "parameter"}}});
  }
  for (const char* stage : {"1", "2"}) {
    ExpectRecorded({{.data = 3},
                    {"--stage", stage, "--exchange", "all_reduce"},
                    {{"stage", stage}, {"exchange", "all_reduce"}}});
  }
  ExpectRecorded({{.data = 2},
                  {"--stage", "2", "--dtype", "fp16", "--reduce-type", "fp32"},
                  {{"stage", "2"}, {"dtype", "float16"}, {"reduce_type", "float32"}}});
}

TEST(RecordedCalls, OwnersOfWholeUnits) {
  for (const char* stage : {"1", "2", "3"}) {
    ExpectRecorded({{.data = 3},
                    {"--stage", stage, "--exchange", "layer_owner"},
                    {{"stage", stage}, {"exchange", "layer_owner"}},
                    4});
  }
  ExpectRecorded({{.data = 2},
                  {"--stage", "2", "--exchange", "layer_owner", "--micro-steps", "2", "--no-overlap"},
                  {{"stage", "2"}, {"exchange", "layer_owner"}, {"micro_steps", "2"}, {"overlap", "false"}}});
}

TEST(RecordedCalls, UnitsGatheredAhead) {
  for (const char* units : {"2", "3", "100"}) {
    ExpectRecorded({{.data = 2},
                    {"--stage", "3", "--prefetch-units", units},
                    {{"stage", "3"}, {"prefetch_units", units}},
                    5});
  }
  ExpectRecorded({{.data = 2},
                  {"--stage", "3", "--prefetch-units", "5", "--unit", "parameter"},
                  {{"stage", "3"}, {"prefetch_units", "5"}, {"unit", "parameter"}}});
}

TEST(RecordedCalls, GroupsAndHalvesOfBlocks) {
  for (const char* stage : {"0", "1", "2", "3"}) {
    ExpectRecorded(
        {{.data = 2}, {"--stage", stage, "--unit-blocks", "2"}, {{"stage", stage}, {"unit_blocks", "2"}}, 5});
    ExpectRecorded({{.data = 3},
                    {"--stage", stage, "--unit", "half_block"},
                    {{"stage", stage}, {"unit", "half_block"}},
                    3});
  }
  ExpectRecorded({{.data = 2},
                  {"--stage", "3", "--unit", "half_block", "--prefetch-units", "3"},
                  {{"stage", "3"}, {"unit", "half_block"}, {"prefetch_units", "3"}},
                  4});
}

TEST(RecordedCalls, HybridSharding) {
  for (const char* stage : {"1", "2", "3"}) {
    ExpectRecorded({{.data = 4, .shard = 2}, {"--stage", stage, "--shard-group", "2"}, {{"stage", stage}}});
  }
  ExpectRecorded({{.data = 4, .shard = 2},
                  {"--stage", "2", "--shard-group", "2", "--no-overlap"},
                  {{"stage", "2"}, {"overlap", "false"}}});
  ExpectRecorded({{.data = 4, .shard = 1},
                  {"--stage", "3", "--shard-group", "1", "--unit", "parameter"},
                  {{"stage", "3"}, {"unit", "parameter"}}});
  ExpectRecorded({{.data = 6, .shard = 3},
                  {"--stage", "2", "--shard-group", "3", "--micro-steps", "2", "--exchange", "owner"},
                  {{"stage", "2"}, {"micro_steps", "2"}, {"exchange", "owner"}}});
  ExpectRecorded({{.data = 4, .shard = 2},
                  {"--stage", "1", "--shard-group", "2", "--exchange", "all_reduce"},
                  {{"stage", "1"}, {"exchange", "all_reduce"}}});
  ExpectRecorded({{.data = 4, .shard = 2},
                  {"--stage", "3", "--secondary-group", "2"},
                  {{"stage", "3"}, {"hybrid", "hpz"}}});
}

// Each bucket must be summed over the replicas directly after its sum over the shard group. It must not wait
// until its buffer is needed again, which with two buffers is two buckets later.
void ExpectReplicasBehindEachBucket(const Arguments& options, Collective first) {
  for (const SectionCalls& section : Recorded({{.data = 4, .shard = 2}, options, {}})) {
    std::vector<const TraceCall*> sums;
    for (const TraceCall& call : section.calls)
      if (call.issued.labelled_role == Role::kGradientReduce) sums.push_back(&call);
    ASSERT_GE(sums.size(), size_t{kSteps * 2 * 4}) << "fewer buckets than buffers show nothing";
    ASSERT_EQ(sums.size() % 2, 0u);
    for (size_t i = 0; i < sums.size(); i += 2) {
      const TraceCall &bucket = *sums[i], &replicas = *sums[i + 1];
      EXPECT_EQ(bucket.issued.call.collective, first) << i;
      EXPECT_EQ(replicas.issued.call.collective, Collective::kAllReduce) << i;
      EXPECT_NE(replicas.communicator, bucket.communicator) << i;
      EXPECT_EQ(2 * replicas.issued.call.bytes, bucket.issued.call.bytes) << i;
      EXPECT_EQ(&replicas - &bucket, 1) << "another call was issued in between";
    }
  }
}

TEST(RecordedCalls, ReplicasAreSummedBehindEachBucket) {
  for (const char* stage : {"1", "2", "3"})
    ExpectReplicasBehindEachBucket({"--stage", stage, "--shard-group", "2"}, Collective::kReduceScatter);
  ExpectReplicasBehindEachBucket({"--stage", "2", "--shard-group", "2", "--exchange", "all_reduce"},
                                 Collective::kAllReduce);
}

}  // namespace
}  // namespace dynamiccl::zero
