// SPDX-License-Identifier: Apache-2.0
// Tests that stage 3 never holds more parameters in memory than it states, at any point of a step.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "zero_workloads/data/batch_loader.h"
#include "zero_workloads/models/gpt.h"
#include "zero_workloads/zero/zero_engine.h"

namespace dynamiccl::zero {
namespace {

// Counts the units whose parameters have memory, before and after each unit's forward pass.
class CountingHooks final : public UnitHooks {
 public:
  CountingHooks(std::vector<ModelUnit> units, UnitHooks* engine)
      : units_(std::move(units)), engine_(engine) {}

  void BeforeForward(int unit) override {
    engine_->BeforeForward(unit);
    EXPECT_TRUE(HasMemory(unit));
    most_ = std::max(most_, InMemory());
  }

  void AfterForward(int unit, const at::Tensor& output) override {
    engine_->AfterForward(unit, output);
    EXPECT_EQ(HasMemory(unit), unit == 0 && c10::GradMode::is_enabled());
  }

  int InMemory() const {
    int count = 0;
    for (size_t unit = 0; unit < units_.size(); ++unit) count += HasMemory(static_cast<int>(unit));
    return count;
  }
  int most() const { return most_; }

 private:
  bool HasMemory(int unit) const {
    return units_[static_cast<size_t>(unit)].parameters[0].tensor->storage().nbytes() > 0;
  }

  std::vector<ModelUnit> units_;
  UnitHooks* engine_;
  int most_ = 0;
};

void ExpectMostInMemory(int64_t units_ahead, int most) {
  auto group = ProcessGroup::Create(RankEnvironment{}, 3, JoinSettings{});
  ASSERT_TRUE(group) << group.error().message;
  Gpt model({.layers = 4, .hidden = 16, .heads = 2, .sequence = 8});
  EngineSettings settings;
  settings.stage = 3;
  settings.units_ahead = units_ahead;
  const auto engine = ZeroEngine::Create(model.Units(), group->get(), settings);
  CountingHooks hooks(model.Units(), engine.get());
  const std::vector<uint8_t> text(100, 'a');
  const BatchLoader loader(text, {2, 8, 0, 1}, 1, at::kCPU);
  for (int step = 0; step < 2; ++step) {
    EXPECT_EQ(hooks.InMemory(), 0) << "between steps";
    const Batch batch = loader.TrainingBatch(step);
    const at::Tensor loss = model.MeanLoss(batch.tokens, batch.targets, &hooks);
    EXPECT_EQ(hooks.InMemory(), 1) << "the root, between forward and backward";
    engine->Backward(loss);
    EXPECT_EQ(hooks.InMemory(), 0) << "after backward";
    engine->Step(loss, 1e-3);
  }
  {
    const c10::NoGradGuard no_gradients;
    const Batch batch = loader.TrainingBatch(0);
    model.LossPerToken(batch.tokens, batch.targets, &hooks);
    EXPECT_EQ(hooks.InMemory(), 0) << "after an evaluation";
  }
  EXPECT_EQ(hooks.most(), most);
}

TEST(Stage3, HoldsTheRootAndTheUnitInUse) {
  ExpectMostInMemory(0, 2);
}

TEST(Stage3, EachUnitAheadIsHeldInAddition) {
  ExpectMostInMemory(1, 3);
  ExpectMostInMemory(2, 4);
  ExpectMostInMemory(3, 5);
  // The model has four blocks and the root.
  ExpectMostInMemory(4, 5);
  ExpectMostInMemory(1000, 5);
}

}  // namespace
}  // namespace dynamiccl::zero
