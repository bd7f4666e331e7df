// SPDX-License-Identifier: Apache-2.0
#include "agents/structure/invented_jobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "agents/structure/framework_sequences.h"

namespace dynamiccl::agents {
namespace {

constexpr int kJobs = 400;

struct InventedJob {
  ModelShape model;
  InventedHabits habits;
  GeneratedRun run;
};

InventedJob JobOf(uint64_t seed) {
  std::mt19937_64 random(seed);
  const char* const models[] = {"gpt:layers=3,hidden=128", "llama:layers=2,hidden=64", "resnet:depth=18"};
  InventedJob job{*ParseModel(models[seed % 3]), {}, {}};
  job.habits = DrawHabits(job.model, random);
  job.run = InventedRun(job.model, job.habits, 3);
  return job;
}

bool Has(const std::vector<WireOperation>& step, Role role, Phase phase = Phase::kUnknown) {
  return std::any_of(step.begin(), step.end(), [&](const WireOperation& operation) {
    return operation.role == role && (phase == Phase::kUnknown || operation.phase == phase);
  });
}

// Returns the number of elements that this role's calls have over the communicators of `axis`.
int64_t ElementsOf(const std::vector<WireOperation>& step, Role role, Axis axis,
                   Phase phase = Phase::kUnknown) {
  int64_t elements = 0;
  for (const WireOperation& operation : step) {
    const bool counts = phase == Phase::kUnknown || operation.phase == phase;
    if (counts && operation.role == role && operation.axis == axis) elements += operation.elements;
  }
  return elements;
}

// Returns the second step's calls for this role.
std::vector<WireOperation> CallsFor(Role role, const ModelShape& model, const InventedHabits& habits) {
  std::vector<WireOperation> calls = InventedRun(model, habits, 2).steps[1];
  std::erase_if(calls, [&](const WireOperation& operation) { return operation.role != role; });
  return calls;
}

int64_t OwnElements(const InventedJob& job) {
  int64_t elements = 0;
  for (const ParameterShape& parameter : job.model.parameters) {
    const bool split = parameter.split != TensorSplit::kNone;
    elements += std::max<int64_t>(parameter.Elements() / (split ? job.habits.world.tensor : 1), 1);
  }
  return elements;
}

TEST(InventedJobs, EqualSeedsGiveEqualRunsAndOthersOtherHabits) {
  EXPECT_EQ(JobOf(3).run.steps, JobOf(3).run.steps);
  std::map<ZeroStage, int> stages;
  std::map<Exchange, int> exchanges;
  for (uint64_t seed = 0; seed < kJobs; ++seed) {
    const InventedJob job = JobOf(seed);
    ++stages[job.habits.stage];
    ++exchanges[job.habits.updated.exchange];
  }
  for (const auto& [stage, jobs] : stages) EXPECT_GT(jobs, kJobs / 8);
  EXPECT_EQ(stages.size(), 4u);
  EXPECT_EQ(exchanges.size(), 3u);
}

TEST(InventedJobs, EveryCallIsLabelledAndGroupsStayOnOneCommunicator) {
  for (uint64_t seed = 0; seed < kJobs; ++seed) {
    const InventedJob job = JobOf(seed);
    for (const auto& step : job.run.steps) {
      ASSERT_FALSE(step.empty()) << seed;
      for (size_t i = 0; i < step.size(); ++i) {
        EXPECT_NE(step[i].role, Role::kUnknown) << seed;
        EXPECT_NE(step[i].phase, Phase::kUnknown) << seed;
        EXPECT_GT(step[i].elements, 0) << seed;
        if (step[i].index_in_group == 0) continue;
        ASSERT_GT(i, 0u);
        EXPECT_EQ(step[i].axis, step[i - 1].axis) << seed;
        EXPECT_EQ(step[i].index_in_group, step[i - 1].index_in_group + 1) << seed;
      }
    }
  }
}

TEST(InventedJobs, AStageHasTheGathersThatItsPartsNeed) {
  for (uint64_t seed = 0; seed < kJobs; ++seed) {
    const InventedJob job = JobOf(seed);
    const auto& step = job.run.steps[1];
    const ZeroStage stage = job.habits.stage;
    const bool keeps = job.habits.kept_elements > 0;
    if (!keeps) {
      EXPECT_EQ(Has(step, Role::kParameterGather, Phase::kForward), stage == ZeroStage::kStage3) << seed;
    }
    EXPECT_EQ(Has(step, Role::kParameterGather, Phase::kBackward) && stage != ZeroStage::kStage3, false)
        << seed;
    if (stage == ZeroStage::kStage0) {
      EXPECT_FALSE(Has(step, Role::kPostStepGather)) << seed;
    }
    if (stage == ZeroStage::kStage1 || stage == ZeroStage::kStage2) {
      EXPECT_TRUE(Has(step, Role::kPostStepGather)) << seed;
    }
    EXPECT_EQ(Has(step, Role::kActivation), job.habits.world.tensor > 1) << seed;
  }
}

// The gradients of every parameter are summed, and every updated part is gathered, once per step or once per
// pass.
TEST(InventedJobs, EveryParameterIsSummedAndComesBack) {
  for (uint64_t seed = 0; seed < kJobs; ++seed) {
    const InventedJob job = JobOf(seed);
    const auto& step = job.run.steps[1];
    const Axis axis = job.habits.second_copies ? Axis::kData : job.habits.world.ShardAxis();
    const int64_t own = OwnElements(job);
    const int64_t passes = job.habits.each_pass ? job.habits.micro_steps : 1;
    // A very small AllReduce looks like a scalar, so it is counted as one.
    const int64_t summed =
        ElementsOf(step, Role::kGradientReduce, axis) + ElementsOf(step, Role::kScalar, axis);
    EXPECT_GE(summed, own * passes) << seed;
    if (job.habits.stage == ZeroStage::kStage1 || job.habits.stage == ZeroStage::kStage2) {
      EXPECT_GE(ElementsOf(step, Role::kPostStepGather, axis), own) << seed;
    }
    if (job.habits.stage != ZeroStage::kStage3) continue;
    const int64_t back = ElementsOf(step, Role::kPostStepGather, axis);
    const int64_t before = ElementsOf(step, Role::kParameterGather, axis, Phase::kForward);
    EXPECT_GE(before + back * job.habits.micro_steps, own * job.habits.micro_steps) << seed;
  }
}

TEST(InventedJobs, SmallParametersThatStayWholeComeBackAfterTheStepAlone) {
  const ModelShape model = *ParseModel("gpt:layers=3,hidden=128");
  InventedHabits habits;
  habits.stage = ZeroStage::kStage3;
  habits.kept_elements = 512;
  habits.updated.pieces = habits.parameters.pieces = Pieces::kParameters;
  const auto small =
      std::count_if(model.parameters.begin(), model.parameters.end(),
                    [](const ParameterShape& parameter) { return parameter.Elements() <= 512; });
  const auto after = CallsFor(Role::kPostStepGather, model, habits);
  EXPECT_EQ(static_cast<int64_t>(after.size()), small);
  for (const WireOperation& operation : after) EXPECT_LE(operation.elements, 512);
  for (const WireOperation& operation : CallsFor(Role::kParameterGather, model, habits))
    EXPECT_GT(operation.elements, 512);
}

TEST(InventedJobs, AlikeParametersOfAllBlocksShareAGroup) {
  const ModelShape model = *ParseModel("gpt:layers=3,hidden=128,tied_head=true");
  InventedHabits habits;
  habits.stage = ZeroStage::kStage1;
  habits.updated_order = Order::kKinds;
  habits.updated = {.pieces = Pieces::kParameters, .grouping = Grouping::kEqual};
  const auto calls = CallsFor(Role::kPostStepGather, model, habits);
  EXPECT_EQ(calls.size(), model.parameters.size());
  // Each block has twelve parameters. A parameter and its copies in the other two blocks share a group, which
  // may also have neighbours of their size.
  const auto together = std::count_if(
      calls.begin(), calls.end(), [](const WireOperation& operation) { return operation.group_size >= 3; });
  EXPECT_GE(together, 3 * 12);
}

TEST(InventedJobs, ExactChunksAreOfOneSize) {
  const ModelShape model = *ParseModel("gpt:layers=3,hidden=128");
  InventedHabits habits;
  habits.gradients = {.pieces = Pieces::kChunks, .chunk = 100000, .exact_chunks = true};
  const auto calls = CallsFor(Role::kGradientReduce, model, habits);
  ASSERT_EQ(static_cast<int64_t>(calls.size()), (model.Elements() + 99999) / 100000);
  for (size_t i = 0; i + 1 < calls.size(); ++i) EXPECT_EQ(calls[i].elements, 100000);
}

TEST(InventedJobs, SecondCopiesAreGatheredFromInTheBackwardAlone) {
  InventedHabits habits;
  habits.stage = ZeroStage::kStage3;
  habits.world = {.data = 8, .tensor = 1, .shard = 4};
  habits.gradient_collective = Collective::kReduceScatter;
  habits.second_copies = true;
  const GeneratedRun run = InventedRun(*ParseModel("gpt:layers=3,hidden=128"), habits, 2);
  for (const WireOperation& operation : run.steps[1]) {
    const bool from_copy = operation.role == Role::kParameterGather && operation.phase == Phase::kBackward;
    EXPECT_EQ(operation.axis, from_copy ? Axis::kShard : Axis::kData);
  }
}

TEST(InventedJobs, OfASingleMicroStepTheFirstTwoStagesAreNotToldApart) {
  InventedHabits habits;
  habits.stage = ZeroStage::kStage1;
  EXPECT_EQ(StageToTell(habits), ZeroStage::kUnknown);
  habits.micro_steps = 2;
  EXPECT_EQ(StageToTell(habits), ZeroStage::kStage1);
  habits.stage = ZeroStage::kStage3;
  habits.micro_steps = 1;
  EXPECT_EQ(StageToTell(habits), ZeroStage::kStage3);
}

TEST(InventedJobs, ParametersThatStayUntilTheStepTellNoStage) {
  InventedHabits habits;
  habits.stage = ZeroStage::kStage3;
  habits.gather_in_backward = false;
  EXPECT_EQ(StageToTell(habits), ZeroStage::kUnknown);
}

TEST(InventedJobs, APlanHasThemBesideItsFrameworksJobs) {
  const JobPlan plan{
      .frameworks = {"ddp"}, .families = {"gpt", "resnet"}, .jobs = 3, .steps = 2, .invented = 2};
  std::mt19937_64 random(1);
  std::map<std::string, size_t> sequences;
  for (const CallSequence& sequence : RandomJobs(plan, random)) ++sequences[sequence.framework];
  EXPECT_EQ(sequences.size(), 3u);
  EXPECT_GE(sequences["invented 0"], 6u);
  EXPECT_GE(sequences["invented 1"], 6u);
}

}  // namespace
}  // namespace dynamiccl::agents
