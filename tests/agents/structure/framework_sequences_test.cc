// SPDX-License-Identifier: Apache-2.0
#include "agents/structure/framework_sequences.h"

#include <gtest/gtest.h>

#include <set>

#include "agents/structure/structure_training.h"

namespace dynamiccl::agents {
namespace {

TEST(FrameworkSequences, EveryGeneratorIsInOneGroup) {
  for (const FrameworkGenerator* generator : AllFrameworkGenerators())
    EXPECT_NE(GroupOf(generator->name()), nullptr) << generator->name();
  size_t members = 0;
  for (const FrameworkGroup& group : AllFrameworkGroups()) members += group.generators.size();
  EXPECT_EQ(members, AllFrameworkGenerators().size());
}

TEST(FrameworkSequences, RandomJobsAreReproducibleLabelledAndInOrder) {
  JobPlan plan = Completed({});
  plan.jobs = 2;
  std::mt19937_64 a(7), b(7);
  const auto jobs = RandomJobs(plan, a), again = RandomJobs(plan, b);
  ASSERT_EQ(jobs.size(), again.size());
  std::set<std::string> frameworks, families;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const CallSequence& job = jobs[i];
    EXPECT_EQ(job.name, again[i].name);
    ASSERT_EQ(job.calls.size(), again[i].calls.size());
    frameworks.insert(job.framework);
    families.insert(job.family);
    EXPECT_TRUE(std::is_sorted(job.step_begins.begin(), job.step_begins.end()));
    for (size_t c = 0; c < job.calls.size(); ++c) {
      EXPECT_NE(job.calls[c].labelled_role, Role::kUnknown) << job.name;
      EXPECT_GT(job.calls[c].call.bytes, 0u) << job.name;
      if (c > 0) {
        EXPECT_GE(job.calls[c].call.call_number, job.calls[c - 1].call.call_number) << job.name;
      }
    }
  }
  EXPECT_EQ(frameworks.size(), AllFrameworkGenerators().size());
  EXPECT_EQ(families.size(), AllFamilies().size());
}

TEST(FrameworkSequences, OnlyCommunicatorsOfTheWholeShardingTellTheStage) {
  const auto run = RunOf({"megatron", "gpt:layers=2,hidden=64", {.data = 4, .tensor = 2}, {}}, 2);
  ASSERT_TRUE(run);
  const auto sequences = SequencesOf(*run, "x");
  // One sequence for all ranks, one for the copies of a shard and one for the shards of a copy.
  ASSERT_EQ(sequences.size(), 3u);
  for (const CallSequence& sequence : sequences) {
    const bool copies = sequence.calls.front().call.n_ranks == 4;
    for (const IssuedCall& issued : sequence.calls)
      EXPECT_EQ(issued.labelled_stage != ZeroStage::kUnknown, copies) << sequence.name;
  }
}

}  // namespace
}  // namespace dynamiccl::agents
