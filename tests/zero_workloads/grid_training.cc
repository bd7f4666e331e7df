// SPDX-License-Identifier: Apache-2.0
#include "tests/zero_workloads/grid_training.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <fstream>
#include <iterator>

#include "src/base/sha256.h"
#include "tests/zero_workloads/rank_threads.h"
#include "zero_workloads/data/batch_loader.h"
#include "zero_workloads/zero/zero_engine.h"

namespace dynamiccl::zero {
namespace {

constexpr uint64_t kSeed = 3;
constexpr int64_t kBatch = 8;

const std::vector<uint8_t>& Text() {
  static const std::vector<uint8_t> text = [] {
    std::ifstream file(DYNAMICCL_TEST_TEXT, std::ios::binary);
    return std::vector<uint8_t>(std::istreambuf_iterator<char>(file), {});
  }();
  return text;
}

// Passes the hooks on to the engine. Records each unit when its parameters are gathered.
class Watch final : public UnitHooks {
 public:
  Watch(std::vector<ModelUnit> units, UnitHooks* engine) : units_(std::move(units)), engine_(engine) {}

  void BeforeForward(int unit) override {
    engine_->BeforeForward(unit);
    for (const ParameterSlot& slot : units_[static_cast<size_t>(unit)].parameters) {
      seen_[slot.name] = slot.tensor->detach().clone();
    }
  }
  void AfterForward(int unit, const at::Tensor& output) override { engine_->AfterForward(unit, output); }

  const at::Tensor& seen(const std::string& name) const { return seen_.at(name); }
  std::string WholeParameters() const {
    Sha256 digest;
    for (const ModelUnit& unit : units_) {
      for (const ParameterSlot& slot : unit.parameters) {
        const at::Tensor& value = seen_.at(slot.name);
        if (!slot.sliced()) {
          digest.Update(
              {static_cast<const std::byte*>(value.const_data_ptr()), static_cast<size_t>(value.nbytes())});
        }
      }
    }
    return ToHex(digest.Finish());
  }

 private:
  std::vector<ModelUnit> units_;
  UnitHooks* engine_;
  std::map<std::string, at::Tensor> seen_;
};

EngineSettings EngineSettingsOf(const GridTraining& training, Grid& grid) {
  EngineSettings settings;
  settings.stage = training.stage;
  settings.bucket_bytes = 20000;
  settings.micro_steps = training.micro_steps;
  settings.seed = kSeed;
  settings.type = settings.reduce_type = training.type;
  settings.tensor = {grid.tensor(), training.sequence_parallel};
  settings.world = grid.world();
  settings.replicas = grid.replicas();
  return settings;
}

BatchLoader Loader(int data_rank, int data_ranks) {
  return {Text(), {kBatch, GridModel().sequence, data_rank, data_ranks}, kSeed, at::kCPU};
}

// The run of one rank.
class RankTraining {
 public:
  RankTraining(const GridTraining& training, Grid& grid, GridOutcome* outcome)
      : training_(training),
        grid_(grid),
        outcome_(outcome),
        model_(GridModel(), {grid.tensor(), training.sequence_parallel}),
        engine_(ZeroEngine::Create(model_.Units(), grid.shard(), EngineSettingsOf(training, grid))),
        watch_(model_.Units(), engine_.get()),
        loader_(Loader(grid.data()->rank(), grid.data()->world())) {}

  // Runs the training. Returns the rank's tensors at the end.
  std::map<std::string, at::Tensor> Run() {
    const std::string first_digest = engine_->ParameterDigest();
    for (int64_t step = 0; step < training_.steps; ++step) Step(step);
    {
      const c10::NoGradGuard no_gradients;
      const Batch batch = loader_.TrainingBatch(0);
      model_.LossPerToken(batch.tokens, batch.targets, &watch_);
    }
    const std::string last_digest = engine_->ParameterDigest();
    if (grid_.world()->rank() == 0) {
      outcome_->first_digest = first_digest;
      outcome_->last_digest = last_digest;
    }
    std::map<std::string, at::Tensor> held;
    for (const ModelUnit& unit : model_.Units()) {
      for (const ParameterSlot& slot : unit.parameters) held[slot.name] = watch_.seen(slot.name);
    }
    return held;
  }

 private:
  void Step(int64_t step) {
    at::Tensor sum = at::zeros({});
    for (int64_t micro = 0; micro < training_.micro_steps; ++micro) {
      const Batch batch = loader_.TrainingBatch(step * training_.micro_steps + micro);
      const at::Tensor loss = model_.MeanLoss(batch.tokens, batch.targets, &watch_);
      engine_->Backward(loss);
      sum += loss.detach();
    }
    const size_t rank = static_cast<size_t>(grid_.world()->rank());
    outcome_->whole_parameters[static_cast<size_t>(step)][rank] = watch_.WholeParameters();
    const StepOutcome outcome = engine_->Step(sum / training_.micro_steps, 3e-3);
    if (rank != 0) return;
    outcome_->losses.push_back(outcome.loss);
    outcome_->gradient_norms.push_back(outcome.gradient_norm);
  }

  const GridTraining& training_;
  Grid& grid_;
  GridOutcome* outcome_;
  Gpt model_;
  std::unique_ptr<ZeroEngine> engine_;
  Watch watch_;
  BatchLoader loader_;
};

}  // namespace

GptShape GridModel() {
  return {.layers = 2, .hidden = 32, .heads = 4, .sequence = 16, .vocabulary = 256};
}

GridOutcome TrainOnGrid(const GridTraining& training) {
  at::set_num_threads(1);
  const size_t world = static_cast<size_t>(training.data * training.tensor);
  GridOutcome outcome;
  outcome.whole_parameters.assign(static_cast<size_t>(training.steps), std::vector<std::string>(world));
  std::vector<std::map<std::string, at::Tensor>> held(world);
  std::vector<ParameterSlot> slots;  // of rank 0; on other tensor ranks only slice_begin differs
  RunGridThreads({static_cast<int>(world), training.tensor, training.stage, training.shard_group},
                 [&](Grid& grid) {
                   const size_t rank = static_cast<size_t>(grid.world()->rank());
                   held[rank] = RankTraining(training, grid, &outcome).Run();
                   if (rank != 0) return;
                   for (const ModelUnit& unit : Gpt(GridModel(), {grid.tensor(), false}).Units()) {
                     slots.insert(slots.end(), unit.parameters.begin(), unit.parameters.end());
                   }
                 });
  for (const ParameterSlot& slot : slots) {
    std::vector<at::Tensor> slices;
    for (size_t rank = 0; rank < static_cast<size_t>(training.tensor); ++rank) {
      slices.push_back(held[rank][slot.name].flatten());
    }
    outcome.parameters[slot.name] = slot.Assemble(slices).to(at::kDouble);
  }
  return outcome;
}

double FirstGradientNorm() {
  class NoHooks final : public UnitHooks {
    void BeforeForward(int) override {}
    void AfterForward(int, const at::Tensor&) override {}
  } hooks;
  Gpt model(GridModel());
  const std::vector<ModelUnit> units = model.Units();
  for (const ModelUnit& unit : units) {
    for (const ParameterSlot& slot : unit.parameters) {
      const at::Tensor values = at::empty(slot.shape);
      FillInitialValues(slot, kSeed, 0, slot.Elements(), values.data_ptr<float>());
      *slot.tensor = values.set_requires_grad(true);
    }
  }
  const Batch batch = Loader(0, 1).TrainingBatch(0);
  model.MeanLoss(batch.tokens, batch.targets, &hooks).backward();
  double square = 0.0;
  for (const ModelUnit& unit : units) {
    for (const ParameterSlot& slot : unit.parameters) {
      square += slot.tensor->grad().to(at::kDouble).square().sum().item<double>();
    }
  }
  return std::sqrt(square);
}

}  // namespace dynamiccl::zero
