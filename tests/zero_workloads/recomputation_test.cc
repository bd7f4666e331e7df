// SPDX-License-Identifier: Apache-2.0
// Tests blocks that are computed again in the backward pass. All bits must be equal. Recomputation must save
// activation memory, which no stage of ZeRO saves.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "tests/zero_workloads/rank_threads.h"
#include "zero_workloads/data/batch_loader.h"
#include "zero_workloads/memory/memory_cap.h"
#include "zero_workloads/models/gpt.h"
#include "zero_workloads/zero/zero_engine.h"
#include "zero_workloads/zero_r/checkpointed_units.h"

namespace dynamiccl::zero {
namespace {

constexpr int64_t kLayers = 3, kHidden = 32, kHeads = 2, kSequence = 16, kRows = 4;
constexpr int64_t kInputElements = kRows * kSequence * kHidden;

// The arena only counts. It is larger than any test needs.
class CountedMemory : public ::testing::Environment {
  void SetUp() override {
    at::set_num_threads(1);  // more threads would only wait on a loaded machine
    ASSERT_TRUE(CapHostTensors(int64_t{1} << 30, MemoryAllocator::kFirstFit));
  }
};
[[maybe_unused]] const auto* const kCountedMemory = ::testing::AddGlobalTestEnvironment(new CountedMemory);

int64_t TakenBytes() {
  const ArenaUse use = *CappedUse();
  return use.total - use.free;
}

// A model with its engine and a batch, on a single rank.
struct Trainee {
  Trainee(ProcessGroup* group, int stage, at::ScalarType type, int64_t layers = kLayers)
      : model({.layers = layers, .hidden = kHidden, .heads = kHeads, .sequence = kSequence}), text(500) {
    for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<uint8_t>(i * i % 251);
    EngineSettings settings;
    settings.stage = stage;
    settings.type = settings.reduce_type = type;
    engine = ZeroEngine::Create(model.Units(), group, settings);
    batch = BatchLoader(text, {kRows, kSequence, 0, 1}, 1, at::kCPU).TrainingBatch(0);
  }

  at::Tensor Loss(UnitHooks* hooks) const { return model.MeanLoss(batch.tokens, batch.targets, hooks); }

  Gpt model;
  std::vector<uint8_t> text;
  std::unique_ptr<ZeroEngine> engine;
  Batch batch;
};

std::unique_ptr<ProcessGroup> LoneRank() {
  auto group = ProcessGroup::Create(RankEnvironment{}, 0, JoinSettings{});
  EXPECT_TRUE(group);
  return std::move(*group);
}

// Records the inputs and outputs of each block, in the forward pass and in the recomputation.
class NotingHooks final : public UnitHooks {
 public:
  explicit NotingHooks(UnitHooks* below) : below_(below) {}
  void BeforeForward(int unit) override { below_->BeforeForward(unit); }
  void AfterForward(int unit, const at::Tensor& output) override { below_->AfterForward(unit, output); }
  at::Tensor Forward(int unit, const UnitForward& forward, const at::Tensor& input) override {
    const auto noting = [this, unit, forward](const at::Tensor& in) {
      const at::Tensor out = forward(in);
      noted[unit].push_back(at::stack({in.detach(), out.detach()}));
      return out;
    };
    return below_->Forward(unit, noting, input);
  }

  std::map<int, std::vector<at::Tensor>> noted;

 private:
  UnitHooks* below_;
};

std::vector<at::Tensor> Gradients(Gpt& model) {
  std::vector<at::Tensor> gradients;
  for (const ModelUnit& unit : model.Units()) {
    for (const ParameterSlot& slot : unit.parameters) gradients.push_back(slot.tensor->grad().clone());
  }
  return gradients;
}

// Stage 1 keeps all gradients until its Backward() ends. A direct call of autograd leaves them readable.
std::vector<at::Tensor> GradientsOf(ProcessGroup* group, at::ScalarType type,
                                    const std::optional<ActivationStoreSettings>& checkpoints,
                                    std::map<int, std::vector<at::Tensor>>* noted = nullptr) {
  Trainee trainee(group, 1, type);
  std::optional<ActivationStore> store;
  std::optional<CheckpointedUnits> units;
  UnitHooks* hooks = trainee.engine.get();
  if (checkpoints) hooks = &units.emplace(hooks, &store.emplace(*checkpoints));
  NotingHooks noting(hooks);
  trainee.Loss(&noting).backward();
  if (store) {
    store->CheckGuards();
    EXPECT_EQ(store->kept().on_device + store->kept().on_host, 0) << "all checkpoints were used up";
  }
  if (noted != nullptr) *noted = noting.noted;
  return Gradients(trainee.model);
}

void ExpectEqual(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i], b[i])) << "parameter " << i;
}

TEST(Recomputation, GivesTheSameBitsInsideAndOut) {
  const auto group = LoneRank();
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    const auto reference = GradientsOf(group.get(), type, std::nullopt);
    for (const bool on_host : {false, true}) {
      for (const int64_t slots : {int64_t{0}, kLayers}) {
        std::map<int, std::vector<at::Tensor>> noted;
        ExpectEqual(reference, GradientsOf(group.get(), type,
                                           ActivationStoreSettings{.on_host = on_host,
                                                                   .pool_slots = slots,
                                                                   .input_elements = kInputElements,
                                                                   .options = type},
                                           &noted));
        ASSERT_EQ(noted.size(), static_cast<size_t>(kLayers));
        for (const auto& [unit, values] : noted) {
          ASSERT_EQ(values.size(), 2u) << "forward, and once more";
          EXPECT_TRUE(at::equal(values[0], values[1])) << "block " << unit;
        }
      }
    }
  }
}

TEST(Recomputation, FromDividedCheckpointsGivesTheSameBits) {
  const auto alone = LoneRank();
  const auto reference = GradientsOf(alone.get(), at::kFloat, std::nullopt);
  for (const int ranks : {2, 4}) {
    RunGridThreads({ranks, ranks}, [&](Grid& grid) {
      // Every rank holds the whole input, as tensor-parallel ranks do.
      const auto own = LoneRank();
      ExpectEqual(reference,
                  GradientsOf(own.get(), at::kFloat,
                              ActivationStoreSettings{.divide_over = grid.tensor(), .options = at::kFloat}));
    });
  }
}

TEST(Recomputation, EvaluationKeepsNothing) {
  const auto group = LoneRank();
  Trainee trainee(group.get(), 0, at::kFloat);
  ActivationStore store({.options = at::kFloat});
  CheckpointedUnits units(trainee.engine.get(), &store);
  const c10::NoGradGuard no_gradients;
  trainee.Loss(&units);
  EXPECT_EQ(store.peak().on_device, 0);
}

// Returns the bytes that a forward pass keeps for the backward pass. Parameters that stage 3 gathered are not
// counted.
int64_t ActivationBytes(int stage, bool checkpoints, int64_t layers) {
  const auto group = LoneRank();
  Trainee trainee(group.get(), stage, at::kFloat, layers);
  ActivationStore store({.options = at::kFloat});
  CheckpointedUnits units(trainee.engine.get(), &store);
  UnitHooks* const hooks = checkpoints ? static_cast<UnitHooks*>(&units) : trainee.engine.get();
  const auto parameters = [&] {
    int64_t bytes = 0;
    for (const ModelUnit& unit : trainee.model.Units())
      bytes += static_cast<int64_t>(unit.parameters[0].tensor->storage().nbytes());
    return bytes;
  };
  const int64_t before = TakenBytes() - parameters();
  const at::Tensor loss = trainee.Loss(hooks);
  const int64_t left = TakenBytes() - parameters() - before;
  trainee.engine->Backward(loss);
  return left;
}

TEST(ActivationMemory, IsNotSavedByStage3AndIsByCheckpoints) {
  const int64_t none = ActivationBytes(0, false, kLayers);
  EXPECT_EQ(ActivationBytes(3, false, kLayers), none);
  const int64_t full = ActivationBytes(0, true, kLayers);
  EXPECT_EQ(ActivationBytes(3, true, kLayers), full);
  EXPECT_LT(full, none / 2);
}

// The estimate of --activation-checkpoints auto relies on these numbers.
TEST(ActivationMemory, OfABlockIsSixteenInputsOrOne) {
  const auto input = static_cast<double>(kInputElements * 4);
  const auto block = [&](bool checkpoints) {
    return static_cast<double>(ActivationBytes(0, checkpoints, kLayers + 1) -
                               ActivationBytes(0, checkpoints, kLayers)) /
           input;
  };
  EXPECT_EQ(block(true), 1.0);
  // Besides 16 inputs, autograd keeps some numbers per row: means and deviations of the norms, sums of the
  // softmax.
  EXPECT_GE(block(false), 16.0);
  EXPECT_LE(block(false), 16.3);
}

}  // namespace
}  // namespace dynamiccl::zero
