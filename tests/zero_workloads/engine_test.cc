// SPDX-License-Identifier: Apache-2.0
// Trains modules of LibTorch's own layers under ZeRO. All stages must agree bit for bit, and on one rank they
// must agree with LibTorch's AdamW. In stage 3 only the units in use may have memory.
#include "zero_workloads/zero/engine.h"

#include <gtest/gtest.h>
#include <torch/nn.h>
#include <torch/optim/adamw.h>

#include <map>
#include <mutex>
#include <optional>

#include "tests/zero_workloads/rank_threads.h"

namespace dynamiccl::zero {
namespace {

namespace nn = torch::nn;

constexpr int kSteps = 8;

struct Subject {
  std::shared_ptr<nn::Module> module;
  std::function<at::Tensor(int64_t rows, int64_t seed)> loss;
};

at::Tensor Random(at::IntArrayRef shape, int64_t seed) {
  return at::randn(shape, at::make_generator<at::CPUGeneratorImpl>(static_cast<uint64_t>(seed)));
}

Subject Perceptron() {
  nn::Sequential module(nn::Linear(12, 40), nn::GELU(), nn::LayerNorm(nn::LayerNormOptions({40})),
                        nn::Linear(40, 40), nn::GELU(), nn::Linear(40, 3));
  return {module.ptr(), [module](int64_t rows, int64_t seed) mutable {
            const at::Tensor input = Random({rows, 12}, seed);
            return at::mse_loss(module->forward(input), input.narrow(1, 0, 3).sin());
          }};
}

struct EncoderImpl : nn::Module {
  EncoderImpl() {
    embedding = register_module("embedding", nn::Embedding(30, 16));
    nn::TransformerEncoderLayer layer(
        nn::TransformerEncoderLayerOptions(16, 2).dim_feedforward(32).dropout(0.0));
    layers = register_module("layers", nn::TransformerEncoder(nn::TransformerEncoderOptions(layer, 3)));
    head = register_module("head", nn::Linear(16, 30));
    scale = register_parameter("scale", at::ones({1}));
  }
  at::Tensor forward(const at::Tensor& tokens) {
    return head->forward(layers->forward(embedding->forward(tokens))) * scale;
  }
  nn::Embedding embedding{nullptr};
  nn::TransformerEncoder layers{nullptr};
  nn::Linear head{nullptr};
  at::Tensor scale;
};

Subject Encoder() {
  const auto module = std::make_shared<EncoderImpl>();
  return {module, [module](int64_t rows, int64_t seed) {
            const at::Tensor tokens = Random({7, rows}, seed).mul(10).to(at::kLong).remainder(30);
            return at::cross_entropy_loss(module->forward(tokens).flatten(0, 1), tokens.flatten());
          }};
}

Subject Convolutional() {
  nn::Sequential module(nn::Conv2d(nn::Conv2dOptions(1, 4, 3).padding(1)), nn::BatchNorm2d(4), nn::ReLU(),
                        nn::Conv2d(nn::Conv2dOptions(4, 6, 3).stride(2)), nn::ReLU(), nn::Flatten(),
                        nn::Linear(54, 5));
  return {module.ptr(), [module](int64_t rows, int64_t seed) mutable {
            const at::Tensor images = Random({rows, 1, 8, 8}, seed);
            const at::Tensor classes = images.flatten(1).sum(1).abs().to(at::kLong).remainder(5);
            return at::cross_entropy_loss(module->forward(images), classes);
          }};
}

// Uses its layers in another order than it registers them. It uses one of them twice and one not at all.
struct TangledImpl : nn::Module {
  TangledImpl() {
    last = register_module("last", nn::Linear(8, 1));
    unused = register_module("unused", nn::Linear(8, 8));
    twice = register_module("twice", nn::Linear(8, 8));
    first = register_module("first", nn::Linear(4, 8));
  }
  at::Tensor forward(const at::Tensor& input) {
    const at::Tensor hidden = twice->forward(at::relu(first->forward(input)));
    return last->forward(at::relu(twice->forward(at::relu(hidden)) + first->forward(input)));
  }
  nn::Linear last{nullptr}, unused{nullptr}, twice{nullptr}, first{nullptr};
};

Subject Tangled() {
  const auto module = std::make_shared<TangledImpl>();
  return {module, [module](int64_t rows, int64_t seed) {
            const at::Tensor input = Random({rows, 4}, seed);
            return at::mse_loss(module->forward(input), input.sum(1, true).cos());
          }};
}

// Has operations that read the parameters of two or three units at once.
struct JointImpl : nn::Module {
  JointImpl() {
    start = register_module("start", nn::Linear(4, 8));
    up = register_module("up", nn::Linear(8, 3));
    down = register_module("down", nn::Linear(3, 8));
    end = register_module("end", nn::Linear(8, 1));
  }
  at::Tensor forward(const at::Tensor& input) {
    const at::Tensor hidden = start->forward(input);
    const at::Tensor biases = at::cat({down->bias, up->bias, end->bias}).sum();
    return end->forward(at::linear(hidden, at::matmul(down->weight, up->weight)).tanh()) + biases;
  }
  nn::Linear start{nullptr}, up{nullptr}, down{nullptr}, end{nullptr};
};

Subject Joint() {
  const auto module = std::make_shared<JointImpl>();
  return {module, [module](int64_t rows, int64_t seed) {
            const at::Tensor input = Random({rows, 4}, seed);
            return at::mse_loss(module->forward(input), input.prod(1, true));
          }};
}

// Does not use its first layer, which is the root, and two layers in a row. These are more than the engine
// gathers ahead.
struct SparseImpl : nn::Module {
  SparseImpl() {
    for (const char* name : {"unused_first", "start", "unused_one", "unused_two", "end"})
      register_module(name, nn::Linear(4, 4));
  }
  at::Tensor forward(const at::Tensor& input) {
    return Layer("end").forward(at::gelu(Layer("start").forward(input)));
  }
  nn::LinearImpl& Layer(const char* name) { return *named_children()[name]->as<nn::Linear>(); }
};

Subject Sparse() {
  const auto module = std::make_shared<SparseImpl>();
  return {module, [module](int64_t rows, int64_t seed) {
            const at::Tensor input = Random({rows, 4}, seed);
            return at::mse_loss(module->forward(input), input.cos());
          }};
}

using Maker = Subject (*)();
const std::map<std::string, Maker> kSubjects = {
    {"perceptron", Perceptron}, {"encoder", Encoder}, {"convolutional", Convolutional},
    {"tangled", Tangled},       {"joint", Joint},     {"sparse", Sparse}};

struct Outcome {
  std::vector<float> losses;
  std::string digest;
  bool operator==(const Outcome&) const = default;
};

EngineSettings SettingsOf(int stage) {
  EngineSettings settings;
  settings.stage = stage;
  settings.bucket_bytes = 2048;
  return settings;
}

Outcome TrainOnThreads(Maker make, int ranks, int stage, int shard_group = 0, int secondary_group = 0) {
  std::mutex making;
  Outcome outcome;
  const GridThreads threads{
      .ranks = ranks, .stage = stage, .shard_group = shard_group, .secondary_group = secondary_group};
  RunGridThreads(threads, [&](Grid& grid) {
    ProcessGroup* const group = grid.world();
    Subject subject;
    {
      // LibTorch's layers draw from one generator. The other ranks draw other values than rank 0, and then
      // receive rank 0's values.
      const std::lock_guard lock(making);
      at::manual_seed(static_cast<uint64_t>(group->rank()) + 5);
      subject = make();
    }
    EngineSettings settings = SettingsOf(stage);
    settings.world = group;
    settings.replicas = grid.replicas();
    settings.secondary = grid.secondary();
    Engine engine(*subject.module, grid.shard(), settings);
    std::vector<float> losses;
    for (int step = 0; step < kSteps; ++step) {
      const at::Tensor loss =
          engine.Forward([&] { return subject.loss(6, step * group->world() + group->rank()); });
      engine.Backward(loss);
      losses.push_back(engine.Step(loss, 1e-2).loss);
    }
    const std::string digest = engine.ParameterDigest();
    if (group->rank() == 0) outcome = {losses, digest};
  });
  return outcome;
}

TEST(AnyModule, IsEqualInAllStages) {
  for (const auto& [name, make] : kSubjects) {
    for (const int ranks : {1, 2}) {
      const Outcome reference = TrainOnThreads(make, ranks, 0);
      ASSERT_EQ(reference.losses.size(), static_cast<size_t>(kSteps)) << name;
      for (const int stage : {1, 2, 3}) {
        EXPECT_EQ(TrainOnThreads(make, ranks, stage), reference)
            << name << ", stage " << stage << ", " << ranks;
      }
    }
  }
}

TEST(AnyModule, TrainsInReplicasOfShardGroups) {
  for (const auto& [name, make] : kSubjects) {
    const Outcome plain = TrainOnThreads(make, 4, 2);
    const Outcome hybrid = TrainOnThreads(make, 4, 2, 2);
    ASSERT_EQ(hybrid.losses.size(), static_cast<size_t>(kSteps));
    for (size_t step = 0; step < plain.losses.size(); ++step) {
      EXPECT_NEAR(hybrid.losses[step], plain.losses[step], 1e-5) << name << ", step " << step;
    }
    EXPECT_EQ(TrainOnThreads(make, 4, 3, 2), hybrid) << name;
    EXPECT_EQ(TrainOnThreads(make, 4, 3, 2, 2), hybrid) << name << ", second copy";
  }
}

TEST(AnyModule, LearnsAsWithLibTorchsOwnOptimizer) {
  for (const auto& [name, make] : kSubjects) {
    const Outcome ours = TrainOnThreads(make, 1, 3);
    at::manual_seed(5);
    const Subject subject = make();
    std::vector<at::Tensor> used;
    for (const auto& parameter : subject.module->named_parameters()) {
      // LibTorch does not change a parameter without a gradient, not even by weight decay.
      if (parameter.key().rfind("unused", 0) != 0) used.push_back(parameter.value());
    }
    torch::optim::AdamW optimizer(used,
                                  torch::optim::AdamWOptions(1e-2).betas({0.9, 0.95}).weight_decay(0.1));
    for (int step = 0; step < kSteps; ++step) {
      const at::Tensor loss = subject.loss(6, step);
      optimizer.zero_grad();
      loss.backward();
      nn::utils::clip_grad_norm_(used, 1.0);
      optimizer.step();
      EXPECT_NEAR(loss.item<float>(), ours.losses[static_cast<size_t>(step)], 1e-5)
          << name << ", step " << step;
    }
  }
}

// If a weight's gradient never changes, AdamW changes the weight in each step by the learning rate, here
// 1e-4. Just below 1, neighbouring numbers of half precision differ by 2^-11. So the change is rounded away
// unless there are master weights.
TEST(AnyModule, WithoutMasterWeightsUpdatesOfHalfPrecisionAreLost) {
  for (const bool rounds : {false, true}) {
    for (const int stage : {0, 1, 3}) {
      RunRankThreads(2, stage, [&](ProcessGroup* group) {
        nn::Linear one(nn::LinearOptions(1, 1).bias(false));
        one->weight.data().fill_(1);
        EngineSettings settings = SettingsOf(stage);
        settings.type = settings.reduce_type = at::kHalf;
        settings.rounds_master_weights = rounds;
        settings.adamw.weight_decay = 0;
        Engine engine(*one, group, settings);
        float output = 0;
        for (int step = 0; step < 300; ++step) {
          const at::Tensor loss = engine.Forward([&] {
            return one->forward(at::ones({1, 1}, at::kHalf)).sum();
          });
          engine.Backward(loss);
          output = engine.Step(loss, 1e-4).loss;
        }
        EXPECT_NEAR(output, rounds ? 1.0 : 0.97, rounds ? 0 : 1e-3) << "stage " << stage;
      });
    }
  }
}

// The module is so large that its gathers are still in flight when the test reads its parameters.
TEST(AnyModule, HasItsNewParametersAfterAStep) {
  for (const int stage : {0, 1, 2}) {
    RunRankThreads(2, stage, [&](ProcessGroup* group) {
      nn::Sequential module(nn::Linear(8, 512), nn::Linear(512, 2048), nn::Linear(2048, 4));
      EngineSettings settings = SettingsOf(stage);
      settings.bucket_bytes = 1 << 20;
      Engine engine(*module, group, settings);
      for (int step = 0; step < 4; ++step) {
        const at::Tensor loss = engine.Forward([&] {
          return module->forward(Random({2, 8}, step)).square().mean();
        });
        engine.Backward(loss);
        engine.Step(loss, 1e-2);
        std::vector<at::Tensor> seen;
        for (const at::Tensor& parameter : module->parameters()) seen.push_back(parameter.clone());
        // The digest's gathers are issued after those of the step, so both are done when it returns.
        engine.ParameterDigest();
        for (size_t i = 0; i < seen.size(); ++i) {
          EXPECT_TRUE(at::equal(seen[i], module->parameters()[i])) << "stage " << stage << ", step " << step;
        }
      }
    });
  }
}

TEST(AnyModule, CanBeUsedAfterItsEngine) {
  RunRankThreads(1, 0, [&](ProcessGroup* group) {
    nn::Linear one(4, 4);
    const auto loss = [&] { return one->forward(at::ones({2, 4})).square().sum(); };
    std::optional<Engine> engine(std::in_place, *one, group, SettingsOf(0));
    const at::Tensor first = engine->Forward(loss);
    engine->Backward(first);
    engine->Step(first, 1e-2);
    engine.reset();
    loss().backward();
    EXPECT_TRUE(at::equal(one->bias.grad(), 2 * one->forward(at::ones({2, 4})).sum(0)));
  });
}

// Returns the number of elements of the parameters that have memory.
int64_t ElementsInMemory(const nn::Module& module) {
  int64_t elements = 0;
  for (const at::Tensor& parameter : module.parameters()) {
    if (parameter.storage().nbytes() > 0) elements += parameter.numel();
  }
  return elements;
}

TEST(AnyModule, Stage3HoldsTheUnitsInUseAlone) {
  RunRankThreads(1, 3, [&](ProcessGroup* group) {
    // Eight layers of equal size, each a unit.
    nn::Sequential module;
    for (int layer = 0; layer < 8; ++layer) module->push_back(nn::Linear(32, 32));
    const int64_t unit = 32 * 32 + 32;
    Engine engine(*module, group, SettingsOf(3));
    EXPECT_EQ(ElementsInMemory(*module), 0);
    int64_t most = 0;
    for (int step = 0; step < 2; ++step) {
      const at::Tensor loss = engine.Forward([&] {
        at::Tensor x = Random({4, 32}, step);
        for (auto& layer : *module) {
          x = layer.forward(x).sin();
          most = std::max(most, ElementsInMemory(*module));
        }
        return x.square().mean();
      });
      EXPECT_EQ(ElementsInMemory(*module), unit) << "the first unit stays for the backward pass";
      engine.Backward(loss);
      EXPECT_EQ(ElementsInMemory(*module), 0);
      engine.Step(loss, 1e-3);
    }
    EXPECT_EQ(most, 3 * unit) << "the first, the one in use and the next";
    const c10::NoGradGuard no_gradients;
    engine.Forward([&] { return module->forward(Random({4, 32}, 9)); });
    EXPECT_EQ(ElementsInMemory(*module), 0);
  });
}

TEST(AnyModule, WithoutParametersIsRefused) {
  RunRankThreads(1, 0, [&](ProcessGroup* group) {
    nn::Sequential module{nn::ReLU()};
    EXPECT_THROW(Engine(*module, group, SettingsOf(0)), std::invalid_argument);
  });
}

}  // namespace
}  // namespace dynamiccl::zero
