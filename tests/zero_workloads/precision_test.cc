// SPDX-License-Identifier: Apache-2.0
// Tests half precision: what fails without master weights and loss scaling, and that all ranks agree to skip
// a step.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>
#include <mutex>

#include "tests/zero_workloads/rank_processes.h"
#include "tests/zero_workloads/rank_threads.h"
#include "zero_workloads/data/batch_loader.h"
#include "zero_workloads/models/gpt.h"
#include "zero_workloads/zero/zero_engine.h"

namespace dynamiccl::zero {
namespace {

constexpr GptShape kShape{.layers = 2, .hidden = 16, .heads = 2, .sequence = 8};

EngineSettings HalfPrecision(int stage) {
  EngineSettings settings;
  settings.stage = stage;
  settings.bucket_bytes = 4096;
  settings.type = settings.reduce_type = at::kHalf;
  settings.loss_scale = {.first = 1024, .dynamic = true, .growth_interval = 3, .hysteresis = 1, .least = 1};
  return settings;
}

class Rank {
 public:
  Rank(ProcessGroup* group, const EngineSettings& settings)
      : model_(kShape),
        engine_(ZeroEngine::Create(model_.Units(), group, settings)),
        text_(MakeText()),
        loader_(text_, {2 * group->world(), kShape.sequence, group->rank(), group->world()}, 1, at::kCPU) {}

  ZeroEngine& engine() { return *engine_; }
  at::Tensor parameter(const std::string& name) {
    for (const ModelUnit& unit : model_.Units()) {
      for (const ParameterSlot& slot : unit.parameters) {
        if (slot.name == name) return *slot.tensor;
      }
    }
    throw std::logic_error("no parameter " + name);
  }
  // `factor` makes gradients smaller or larger.
  StepOutcome Step(double factor = 1.0) {
    const Batch batch = loader_.TrainingBatch(steps_++);
    const at::Tensor loss = model_.MeanLoss(batch.tokens, batch.targets, engine_.get());
    engine_->Backward(loss.mul(factor));
    return engine_->Step(loss, 1e-3);
  }

 private:
  static std::vector<uint8_t> MakeText() {
    std::vector<uint8_t> text(4000);
    for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<uint8_t>('a' + i * i % 23);
    return text;
  }

  Gpt model_;
  std::unique_ptr<ZeroEngine> engine_;
  std::vector<uint8_t> text_;
  BatchLoader loader_;
  int64_t steps_ = 0;
};

// Runs a step in which only one rank has a gradient that is not finite. All ranks must skip it.
void ExpectAllSkip(int ranks, int stage, float bad) {
  std::mutex mutex;
  std::vector<std::string> names;
  RunRankThreads(ranks, stage, [&](ProcessGroup* group) {
    Rank rank(group, HalfPrecision(stage));
    bool spoil = false;
    rank.parameter("block.1.feed_forward.expand.weight").register_hook([&](const at::Tensor& gradient) {
      if (!spoil) return gradient;
      at::Tensor spoilt = gradient.clone();
      spoilt[3][5] = bad;
      return spoilt;
    });
    EXPECT_FALSE(rank.Step().skipped);
    const std::string before = rank.engine().ParameterDigest();
    spoil = group->rank() == ranks - 1;
    const StepOutcome outcome = rank.Step();
    EXPECT_TRUE(outcome.skipped) << "rank " << group->rank();
    EXPECT_EQ(outcome.loss_scale, 1024);
    EXPECT_EQ(rank.engine().ParameterDigest(), before);
    spoil = false;
    for (const double scale : {512, 512, 512, 1024}) {
      const StepOutcome next = rank.Step();
      EXPECT_FALSE(next.skipped);
      EXPECT_EQ(next.loss_scale, scale) << "rank " << group->rank();
    }
    EXPECT_NE(rank.engine().ParameterDigest(), before);
    const std::lock_guard lock(mutex);
    if (!outcome.overflow_in.empty()) names.push_back(outcome.overflow_in);
  });
  // A reduced gradient is on one rank. In stage 0 each rank checks its part of the gradients.
  EXPECT_EQ(names, std::vector<std::string>{"block.1.feed_forward.expand.weight"}) << "stage " << stage;
}

TEST(LossScaling, OneRanksOverflowSkipsTheStepOnAllOfThem) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const int ranks : {1, 2, 3}) {
    for (int stage = 0; stage <= 3; ++stage) ExpectAllSkip(ranks, stage, kInfinity);
  }
  ExpectAllSkip(2, 2, std::numeric_limits<float>::quiet_NaN());
}

TEST(LossScaling, KeepsGradientsThatVanishWithoutIt) {
  RunRankThreads(1, 0, [&](ProcessGroup* group) {
    constexpr double kSmall = 1e-7;
    EngineSettings plain = HalfPrecision(0), scaled = plain;
    plain.loss_scale = {};
    scaled.loss_scale.first = 0x1p20;
    Rank full(group, [&] {
      EngineSettings settings = plain;
      settings.type = settings.reduce_type = at::kFloat;
      return settings;
    }());
    const float truth = full.Step(kSmall).gradient_norm;
    EXPECT_LT(Rank(group, plain).Step(kSmall).gradient_norm, 0.5f * truth);
    EXPECT_NEAR(Rank(group, scaled).Step(kSmall).gradient_norm, truth, 0.02f * truth);
  });
}

TEST(LossScaling, AScaleThatIsFixedTooHighEndsTheRun) {
  RunRankThreads(1, 0, [&](ProcessGroup* group) {
    EngineSettings settings = HalfPrecision(0);
    settings.loss_scale = {.first = 0x1p30};
    Rank rank(group, settings);
    try {
      rank.Step();
      FAIL() << "an overflow was taken";
    } catch (const std::runtime_error& failure) {
      EXPECT_NE(std::string(failure.what()).find("give --loss-scale dynamic"), std::string::npos)
          << failure.what();
    }
  });
}

TEST(MasterWeights, TakeUpdatesThatHalfPrecisionRoundsAway) {
  // 1 - 1e-4 is nearer to 1 than to the next smaller number of half precision.
  at::Tensor half = at::ones({1}, at::kHalf), master = at::ones({1}, at::kFloat);
  for (int step = 0; step < 1000; ++step) {
    half.sub_(1e-4);
    master.sub_(1e-4);
  }
  EXPECT_EQ(half.item<float>(), 1.0f);
  EXPECT_NEAR(master.to(at::kHalf).item<float>(), 0.9f, 1e-3f);
}

using Arguments = std::vector<std::string>;

TrainingReport TrainWith(int ranks, const Arguments& arguments) {
  return TrainSmall(ranks, arguments, {{"HOSTCCL_SUM", "rank_order"}});
}

TEST(HalfPrecision, StagesAreEqualToTheBit) {
  for (const int ranks : {2, 3}) {
    const TrainingReport reference = TrainWith(ranks, {"--dtype", "fp16", "--stage", "0"});
    for (const char* stage : {"1", "2", "3"}) {
      const TrainingReport report = TrainWith(ranks, {"--dtype", "fp16", "--stage", stage});
      EXPECT_EQ(report.losses, reference.losses) << "stage " << stage;
      EXPECT_EQ(report.parameters_sha256, reference.parameters_sha256) << "stage " << stage;
    }
  }
}

TEST(HalfPrecision, StaysNearFp32WithEitherReduceType) {
  const TrainingReport fp32 = TrainWith(2, {});
  for (const char* type : {"fp16", "bf16"}) {
    const auto distance = [&](const char* reduce) {
      const TrainingReport report =
          TrainWith(2, {"--dtype", type, "--reduce-type", reduce, "--loss-scale", "1024", "--stage", "3"});
      double sum = 0;
      for (size_t i = 0; i < fp32.losses.size(); ++i)
        sum += std::abs(std::stod(report.losses[i]) - std::stod(fp32.losses[i]));
      return sum / static_cast<double>(fp32.losses.size());
    };
    EXPECT_LT(distance("fp32"), 0.02) << type;
    EXPECT_LT(distance("model"), 0.02) << type;
  }
}

TEST(Accumulation, LocalSumsAreEqualInAllStages) {
  for (const char* type : {"fp32", "model"}) {
    const Arguments local = {"--dtype",        "bf16",  "--micro-steps",       "3",
                             "--accumulation", "local", "--accumulation-type", type};
    const auto train = [&](const char* stage) {
      Arguments arguments = local;
      arguments.insert(arguments.end(), {"--stage", stage});
      return TrainWith(2, arguments);
    };
    const TrainingReport reference = train("0");
    for (const char* stage : {"1", "2", "3"}) {
      const TrainingReport report = train(stage);
      EXPECT_EQ(report.losses, reference.losses) << "stage " << stage;
      EXPECT_EQ(report.parameters_sha256, reference.parameters_sha256) << "stage " << stage;
    }
  }
}

}  // namespace
}  // namespace dynamiccl::zero
