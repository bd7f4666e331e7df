// SPDX-License-Identifier: Apache-2.0
// Tests that overlap is safe. No gathered parameter and no bucket may be read outside its lifetime, and links
// of any speed must give the same bits.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <thread>

#include "tests/support/test_seed.h"
#include "tests/zero_workloads/rank_processes.h"
#include "tests/zero_workloads/rank_threads.h"
#include "zero_workloads/data/batch_loader.h"
#include "zero_workloads/models/gpt.h"
#include "zero_workloads/zero/zero_engine.h"

namespace dynamiccl::zero {
namespace {

// Stalls this rank at random points of a pass, so that other ranks go ahead.
class StallingHooks final : public UnitHooks {
 public:
  StallingHooks(UnitHooks* engine, uint64_t seed) : engine_(engine), random_(seed) {}
  void BeforeForward(int unit) override {
    Stall();
    engine_->BeforeForward(unit);
  }
  void AfterForward(int unit, const at::Tensor& output) override {
    engine_->AfterForward(unit, output);
    if (output.defined() && output.requires_grad()) {
      output.register_hook([this](const at::Tensor&) { Stall(); });
    }
    Stall();
  }

 private:
  void Stall() {
    // Yielding would also wait for all other work of the machine. Sleeping lets only the other ranks go
    // ahead.
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % 200));
  }

  UnitHooks* engine_;
  std::mt19937_64 random_;
};

struct Variant {
  int ranks = 2;
  int stage = 3;
  bool overlap = true, poison = false;
  int64_t units_ahead = 1;
  uint64_t stalls = 0;  // seed of the stalls; 0: no stalls
  int shard_group = 0, secondary_group = 0;
};

std::string DigestAfterTraining(const Variant& variant) {
  std::string digest;
  const GridThreads threads{.ranks = variant.ranks,
                            .stage = variant.stage,
                            .shard_group = variant.shard_group,
                            .secondary_group = variant.secondary_group};
  RunGridThreads(threads, [&](Grid& grid) {
    ProcessGroup* const group = grid.world();
    const GptShape shape{.layers = 3, .hidden = 16, .heads = 2, .sequence = 8};
    Gpt model(shape);
    EngineSettings settings;
    settings.stage = variant.stage;
    settings.bucket_bytes = 4096;
    settings.overlap = variant.overlap;
    settings.units_ahead = variant.units_ahead;
    settings.poison = variant.poison;
    settings.world = group;
    settings.replicas = grid.replicas();
    settings.secondary = grid.secondary();
    const auto engine = ZeroEngine::Create(model.Units(), grid.shard(), settings);
    StallingHooks stalling(engine.get(), variant.stalls + static_cast<uint64_t>(group->rank()));
    UnitHooks* const hooks = variant.stalls == 0 ? static_cast<UnitHooks*>(engine.get()) : &stalling;
    std::vector<uint8_t> text(500);
    for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<uint8_t>(i * i);
    const BatchLoader loader(text, {2 * group->world(), 8, group->rank(), group->world()}, 1, at::kCPU);
    for (int step = 0; step < 6; ++step) {
      const Batch batch = loader.TrainingBatch(step);
      const at::Tensor loss = model.MeanLoss(batch.tokens, batch.targets, hooks);
      engine->Backward(loss);
      engine->Step(loss, 1e-2);
    }
    const std::string mine = engine->ParameterDigest();
    if (group->rank() == 0) digest = mine;
  });
  return digest;
}

TEST(Lifetimes, PoisonInWhatIsNotInUseReachesNoResult) {
  for (const int stage : {0, 1, 2, 3}) {
    const std::string clean = DigestAfterTraining({.stage = stage});
    ASSERT_FALSE(clean.empty());
    for (const bool overlap : {true, false}) {
      for (const int64_t ahead : {0, 1, 2, 9}) {
        const Variant variant{.stage = stage, .overlap = overlap, .poison = true, .units_ahead = ahead};
        EXPECT_EQ(DigestAfterTraining(variant), clean)
            << "stage " << stage << ", overlap " << overlap << ", " << ahead << " units ahead";
      }
    }
  }
}

// The gathers of an engine's last step may still be in flight when the engine is destroyed.
TEST(Lifetimes, AnEngineMayEndRightAfterAStep) {
  for (const int stage : {1, 2}) {
    RunRankThreads(2, stage, [&](ProcessGroup* group) {
      const std::vector<uint8_t> text(500, 'a');
      const BatchLoader loader(text, {2, 8, group->rank(), 2}, 1, at::kCPU);
      const Batch batch = loader.TrainingBatch(0);
      std::string first;
      for (int round = 0; round < 30; ++round) {
        Gpt model({.layers = 2, .hidden = 64, .heads = 2, .sequence = 8});
        EngineSettings settings;
        settings.stage = stage;
        const auto engine = ZeroEngine::Create(model.Units(), group, settings);
        const at::Tensor loss = model.MeanLoss(batch.tokens, batch.targets, engine.get());
        engine->Backward(loss);
        const StepOutcome outcome = engine->Step(loss, 1e-2);
        const std::string bits = fmt::format("{:a} {:a}", outcome.loss, outcome.gradient_norm);
        if (round == 0) first = bits;
        EXPECT_EQ(bits, first) << "round " << round;
      }
    });
  }
}

TEST(Lifetimes, RanksThatStallAnywhereChangeNothing) {
  const std::string clean = DigestAfterTraining({});
  const uint64_t seed = test::TestSeed(1);
  for (uint64_t run = 1; run <= 8; ++run) {
    for (const int stage : {0, 1, 2, 3}) {
      const Variant variant{.stage = stage,
                            .poison = true,
                            .units_ahead = static_cast<int64_t>(run % 4),
                            .stalls = seed + 10 * run};
      EXPECT_EQ(DigestAfterTraining(variant), clean) << "seed " << seed + 10 * run << ", stage " << stage;
    }
  }
}

TEST(Lifetimes, HoldWithReplicasAndSecondCopies) {
  const uint64_t seed = test::TestSeed(2);
  for (const int stage : {1, 2, 3}) {
    Variant variant{.ranks = 4, .stage = stage, .shard_group = 2, .secondary_group = stage == 3 ? 2 : 0};
    const std::string clean = DigestAfterTraining(variant);
    ASSERT_FALSE(clean.empty());
    variant.poison = true;
    for (const uint64_t stalls : {uint64_t{0}, seed, seed + 10}) {
      variant.stalls = stalls;
      for (const bool overlap : {true, false}) {
        variant.overlap = overlap;
        EXPECT_EQ(DigestAfterTraining(variant), clean)
            << "stage " << stage << ", overlap " << overlap << ", seed " << stalls;
      }
    }
  }
}

TEST(Lifetimes, ASlowLinkChangesNothing) {
  const TrainingReport fast = TrainSmall(2, {"--steps", "6"});
  for (const char* stage : {"0", "1", "2", "3"}) {
    const TrainingReport slow =
        TrainSmall(2, {"--steps", "6", "--stage", stage}, {{"HOSTCCL_TOPOLOGY", "two-nodes-ethernet"}});
    EXPECT_EQ(slow.losses, fast.losses) << "stage " << stage;
    EXPECT_EQ(slow.parameters_sha256, fast.parameters_sha256) << "stage " << stage;
  }
}

}  // namespace
}  // namespace dynamiccl::zero
