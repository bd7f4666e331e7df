// SPDX-License-Identifier: Apache-2.0
// Compares the generator of this project's trainer with the volumes of docs/zero_memory.md and with another
// generator of the stages (tests/support/zero_stages.h). tests/zero_workloads/recorded_calls_test.cc compares
// it with the calls of the trainer.
#include <gtest/gtest.h>

#include <random>

#include "tests/support/zero_stages.h"
#include "traces/generators/framework_generator.h"

namespace dynamiccl {
namespace {

ModelShape TrainersModel(int64_t layers, int64_t hidden, int64_t sequence) {
  const auto model = ParseModel(fmt::format(
      "gpt:layers={},hidden={},sequence={},vocabulary=256,head_bias=true", layers, hidden, sequence));
  EXPECT_TRUE(model) << model.error().message;
  return *model;
}

std::vector<WireOperation> StepOf(const ModelShape& model, const WorldShape& world,
                                  const SettingTexts& settings) {
  const auto run = GenerateRun("dynamiccl-zero", model, world, settings, 1);
  EXPECT_TRUE(run) << run.error().message;
  return run->steps[0];
}

int64_t Elements(const std::vector<WireOperation>& step, Collective collective, Axis axis) {
  int64_t sum = 0;
  for (const WireOperation& operation : step) {
    if (operation.collective == collective && operation.axis == axis && operation.role != Role::kScalar)
      sum += operation.elements;
  }
  return sum;
}

constexpr int64_t kLayers = 2, kHidden = 64, kSequence = 32;

struct Sizes {
  int64_t block, root;
  int64_t psi() const { return root + kLayers * block; }
};

// Every parameter of this model is a multiple of 32. Each shard is padded to a multiple of 128.
Sizes SizesAt(int64_t ranks) {
  const auto padded = [&](int64_t elements) {
    return (elements + 128 * ranks - 1) / (128 * ranks) * (128 * ranks);
  };
  return {padded(12 * kHidden * kHidden + 13 * kHidden), padded((2 * 256 + kSequence + 2) * kHidden + 256)};
}

TEST(DynamicclZero, VolumesAreThoseOfTheTable) {
  const ModelShape model = TrainersModel(kLayers, kHidden, kSequence);
  for (const int ranks : {2, 3, 4}) {
    const Sizes sizes = SizesAt(ranks);
    const WorldShape world{.data = ranks};
    const auto elements = [&](const char* stage, Collective collective) {
      return Elements(StepOf(model, world, {{"stage", stage}, {"bucket_bytes", "65536"}}), collective,
                      Axis::kData);
    };
    EXPECT_EQ(elements("0", Collective::kAllReduce), sizes.psi());
    EXPECT_EQ(elements("0", Collective::kReduceScatter) + elements("0", Collective::kAllGather), 0);
    for (const char* stage : {"1", "2", "3"}) {
      EXPECT_EQ(elements(stage, Collective::kAllReduce), 0);
      EXPECT_EQ(elements(stage, Collective::kReduceScatter), sizes.psi());
    }
    EXPECT_EQ(elements("2", Collective::kAllGather), sizes.psi());
    EXPECT_EQ(elements("3", Collective::kAllGather), 2 * sizes.psi() - sizes.root);
  }
}

TEST(DynamicclZero, HybridSumsShardsOverReplicas) {
  const ModelShape model = TrainersModel(kLayers, kHidden, kSequence);
  for (const auto& [data, shard] : {std::pair{4, 2}, {6, 3}, {6, 2}, {4, 1}}) {
    const int64_t psi = SizesAt(shard).psi();
    for (const char* micro_steps : {"1", "3"}) {
      const auto step = StepOf(
          model, {.data = data, .shard = shard},
          {{"stage", "2"}, {"micro_steps", micro_steps}, {"dtype", "bfloat16"}, {"bucket_bytes", "65536"}});
      EXPECT_EQ(Elements(step, Collective::kReduceScatter, Axis::kShard), std::stoi(micro_steps) * psi);
      EXPECT_EQ(Elements(step, Collective::kAllReduce, Axis::kReplicate), psi / shard);
      EXPECT_EQ(Elements(step, Collective::kAllGather, Axis::kShard), psi);
      for (const WireOperation& operation : step) {
        const bool wide =
            operation.role == Role::kScalar || (operation.axis == Axis::kReplicate && micro_steps[0] == '3');
        EXPECT_EQ(operation.data_type, wide ? DataType::kFloat32 : DataType::kBfloat16);
      }
    }
  }
}

TEST(DynamicclZero, SecondCopiesMoveBackwardGathers) {
  const ModelShape model = TrainersModel(kLayers, kHidden, kSequence);
  const auto step = StepOf(model, {.data = 6, .shard = 2}, {{"stage", "3"}, {"hybrid", "hpz"}});
  EXPECT_EQ(Elements(step, Collective::kAllGather, Axis::kData), SizesAt(6).psi());
  EXPECT_EQ(Elements(step, Collective::kAllGather, Axis::kShard), kLayers * SizesAt(6).block);
  EXPECT_EQ(Elements(step, Collective::kReduceScatter, Axis::kData), SizesAt(6).psi());
}

TEST(DynamicclZero, OwnersGetOneCallEach) {
  const ModelShape model = TrainersModel(kLayers, kHidden, kSequence);
  for (const char* stage : {"1", "2", "3"}) {
    const auto whole = StepOf(model, {.data = 3}, {{"stage", stage}});
    const auto owners = StepOf(model, {.data = 3}, {{"stage", stage}, {"exchange", "owner"}});
    // Each of the three owners has its own call, except for the one call of loss and norm.
    EXPECT_EQ(owners.size(), 3 * (whole.size() - 1) + 1);
    EXPECT_EQ(Elements(owners, Collective::kReduce, Axis::kData),
              Elements(whole, Collective::kReduceScatter, Axis::kData));
    EXPECT_EQ(Elements(owners, Collective::kBroadcast, Axis::kData),
              Elements(whole, Collective::kAllGather, Axis::kData));
  }
}

TEST(DynamicclZero, OneCollectiveAParameter) {
  const ModelShape model = TrainersModel(kLayers, kHidden, kSequence);
  const auto step = StepOf(model, {.data = 2}, {{"stage", "1"}, {"unit", "parameter"}});
  EXPECT_EQ(step.size(), 2 * model.parameters.size() + 1);
}

// The other generator of the stages has the trainer's model built in. Both must make the same calls.
TEST(DynamicclZero, IsTheStagesGeneratorWhereBothGo) {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    const auto between = [&](int low, int high) {
      return low + static_cast<int>(random() % (high - low + 1));
    };
    ZeroWorkload workload;
    workload.stage = between(0, 3);
    workload.layers = between(1, 6);
    workload.hidden = 8 * between(1, 40);
    workload.sequence = between(1, 200);
    workload.world = between(1, 9);
    workload.bucket_bytes = between(1, 1 << 20);
    workload.micro_steps = between(1, 3);
    workload.prefetch = between(0, 1) == 1;
    workload.steps = 1;
    const auto step =
        StepOf(TrainersModel(workload.layers, workload.hidden, workload.sequence), {.data = workload.world},
               {{"stage", std::to_string(workload.stage)},
                {"bucket_bytes", std::to_string(workload.bucket_bytes)},
                {"micro_steps", std::to_string(workload.micro_steps)},
                {"prefetch", workload.prefetch ? "true" : "false"}});
    const std::vector<IssuedCall> calls = GenerateZeroCalls(workload);
    ASSERT_EQ(step.size(), calls.size());
    for (size_t call = 0; call < calls.size(); ++call) {
      EXPECT_EQ(step[call].collective, calls[call].call.collective);
      EXPECT_EQ(step[call].Bytes(), calls[call].call.bytes);
      EXPECT_EQ(step[call].role, calls[call].labelled_role);
      EXPECT_EQ(step[call].phase, calls[call].labelled_phase);
    }
  }
}

}  // namespace
}  // namespace dynamiccl
