// SPDX-License-Identifier: Apache-2.0
// Compares two ways to construct a module: without memory for its parameters, and ordinarily by LibTorch.
// Values, the generator's state, losses and digests must be equal bit for bit. In the first way, no rank may
// ever hold the whole module.
#include "zero_workloads/zero/deferred_module.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn.h>

#include <barrier>
#include <cmath>
#include <cstdio>
#include <map>
#include <mutex>

#include "tests/zero_workloads/rank_threads.h"
#include "zero_workloads/memory/memory_counters.h"
#include "zero_workloads/zero/engine.h"

namespace dynamiccl::zero {
namespace {

namespace nn = torch::nn;
using testing::HasSubstr;
using Module = std::shared_ptr<nn::Module>;

constexpr uint64_t kSeed = 7;

Module Perceptron() {
  nn::Sequential module(nn::Linear(12, 40), nn::GELU(), nn::LayerNorm(nn::LayerNormOptions({40})),
                        nn::Linear(40, 40), nn::GELU(), nn::Linear(40, 3));
  return module.ptr();
}

Module Convolutional() {
  nn::Sequential module(nn::Conv2d(nn::Conv2dOptions(1, 4, 3).padding(1)), nn::BatchNorm2d(4), nn::ReLU(),
                        nn::Flatten(), nn::Linear(256, 3));
  return module.ptr();
}

Module Recurrent() {
  return nn::LSTM(nn::LSTMOptions(5, 7).num_layers(2).bidirectional(true)).ptr();
}

Module Encoder() {
  const nn::TransformerEncoderLayer layer(nn::TransformerEncoderLayerOptions(16, 2).dim_feedforward(32));
  return nn::TransformerEncoder(nn::TransformerEncoderOptions(layer, 3)).ptr();
}

// A module that gets first values like GPT-2's: it makes all layers, draws their values again, and scales
// some.
struct GptLikeImpl : nn::Module {
  GptLikeImpl() {
    embedding = register_module("embedding", nn::Embedding(nn::EmbeddingOptions(30, 16).padding_idx(3)));
    for (int block = 0; block < 3; ++block) blocks->push_back(nn::Linear(16, 16));
    register_module("blocks", blocks);
    head = register_module("head", nn::Linear(nn::LinearOptions(16, 30).bias(false)));
    tied = register_parameter("tied", embedding->weight);
    apply([](nn::Module& module) {
      const torch::NoGradGuard no_gradients;
      if (auto* const linear = module.as<nn::LinearImpl>()) {
        nn::init::normal_(linear->weight, 0.0, 0.02);
        if (linear->bias.defined()) nn::init::zeros_(linear->bias);
      }
    });
    const torch::NoGradGuard no_gradients;
    for (auto& block : *blocks) block->as<nn::Linear>()->weight.data().mul_(1 / std::sqrt(6.0));
    mask = register_buffer("mask", torch::ones({8, 8}).tril().log());
    const at::Tensor rate = torch::pow(1e4, torch::arange(0, 8).mul(-0.125));
    waves = register_buffer("waves", torch::outer(torch::arange(32, torch::kFloat), rate).sin());
  }
  nn::Embedding embedding{nullptr};
  nn::ModuleList blocks;
  nn::Linear head{nullptr};
  at::Tensor tied, mask, waves;
};

// A module whose constructor reads values, uses the generator, and changes shapes and parts of tensors in
// place.
struct OddImpl : nn::Module {
  OddImpl() {
    const at::Tensor order = torch::randperm(12);
    order_of_rows = register_buffer("order", order);
    torch::manual_seed(static_cast<uint64_t>(order[3].item<int64_t>()));
    first = register_parameter("first", torch::rand({12, 6}).index_select(0, order));
    wide = register_parameter("wide", nn::init::orthogonal_(torch::empty({4, 9})));
    sparse = register_parameter("sparse", nn::init::sparse_(torch::empty({6, 5}), 0.5, 1.0));
    const std::vector<at::Tensor> parts = torch::randn({6, 4}).chunk(2);
    upper = register_parameter("upper", parts[0]);
    lower = register_parameter("lower", parts[1]);
    at::Tensor turned = torch::randn({3, 5});
    turned.t_().mul_(2);
    turned_weight = register_parameter("turned", turned);
    counts = register_parameter("counts", torch::poisson(first.detach().mul(3)));
    frozen = register_parameter("frozen", torch::randn({3}), /*requires_grad=*/false);
    at::Generator own = at::make_generator<at::CPUGeneratorImpl>(uint64_t{11});
    drawn = register_parameter("drawn", torch::empty({20}).normal_(0, 1, own));
    to(torch::kDouble);
  }
  at::Tensor order_of_rows, first, wide, sparse, upper, lower, turned_weight, counts, frozen, drawn;
};

template <class Impl>
Module Made() {
  return std::make_shared<Impl>();
}

const std::map<std::string, Module (*)()> kModules = {
    {"perceptron", Perceptron}, {"convolutional", Convolutional}, {"recurrent", Recurrent},
    {"encoder", Encoder},       {"gpt like", Made<GptLikeImpl>},  {"odd", Made<OddImpl>}};

at::Tensor GeneratorState() {
  return at::detail::getDefaultCPUGenerator().get_state();
}

void ExpectEqualBytes(const at::Tensor& tensor, const at::Tensor& expected, const std::string& what) {
  ASSERT_EQ(tensor.sizes(), expected.sizes()) << what;
  ASSERT_EQ(tensor.scalar_type(), expected.scalar_type()) << what;
  EXPECT_TRUE(at::equal(tensor.contiguous().flatten().view(at::kByte),
                        expected.detach().contiguous().flatten().view(at::kByte)))
      << what;
}

TEST(DeferredModule, ValuesAreThoseOfOrdinaryConstruction) {
  for (const auto& [name, make] : kModules) {
    at::manual_seed(kSeed);
    const Module expected = make();
    const at::Tensor state = GeneratorState();
    at::manual_seed(kSeed);
    const DeferredModule model(make);
    EXPECT_TRUE(at::equal(GeneratorState(), state)) << name << ": the generator";
    const auto parameters = model.module().named_parameters();
    ASSERT_EQ(parameters.keys(), expected->named_parameters().keys()) << name;
    // The test asks for the values in reverse order, because no value may depend on the order.
    for (size_t i = parameters.size(); i-- > 0;) {
      const auto& item = parameters[i];
      if (item.value().requires_grad()) {
        EXPECT_THROW(item.value().const_data_ptr(), c10::Error) << name << ", " << item.key();
      }
      ExpectEqualBytes(model.FirstValues(item.value()), expected->named_parameters()[item.key()],
                       name + ", " + item.key());
    }
    for (const auto& item : model.module().named_buffers()) {
      ExpectEqualBytes(item.value(), expected->named_buffers()[item.key()], name + ", " + item.key());
    }
    EXPECT_TRUE(at::equal(GeneratorState(), state)) << name << ": computing values changed the generator";
  }
}

struct Outcome {
  std::vector<float> losses;
  std::string digest;
  bool operator==(const Outcome&) const = default;
};

Outcome Train(Engine& engine, nn::Sequential module, int rank) {
  Outcome outcome;
  for (int64_t step = 0; step < 4; ++step) {
    const auto seed = static_cast<uint64_t>(step * 10 + rank);
    const at::Tensor input = at::randn({6, 12}, at::make_generator<at::CPUGeneratorImpl>(seed));
    const at::Tensor loss =
        engine.Forward([&] { return at::mse_loss(module->forward(input), input.narrow(1, 0, 3).sin()); });
    engine.Backward(loss);
    outcome.losses.push_back(engine.Step(loss, 1e-2).loss);
  }
  outcome.digest = engine.ParameterDigest();
  return outcome;
}

// All ranks are threads of this process and share one generator, so they construct their modules one after
// another. While engines are made, only rank 0 draws values again.
class Turns {
 public:
  explicit Turns(int ranks) : all_(ranks) {}
  void Construct(int rank, const std::function<void()>& construct) {
    {
      const std::lock_guard lock(mutex_);
      at::manual_seed(kSeed + static_cast<uint64_t>(rank));
      construct();
    }
    all_.arrive_and_wait();
  }
  void Await() { all_.arrive_and_wait(); }

 private:
  std::mutex mutex_;
  std::barrier<> all_;
};

Outcome TrainOnThreads(bool deferred, int ranks, int stage, int shard_group) {
  Outcome outcome;
  Turns turns(ranks);
  RunGridThreads({.ranks = ranks, .stage = stage, .shard_group = shard_group}, [&](Grid& grid) {
    const int rank = grid.world()->rank();
    EngineSettings settings;
    settings.stage = stage;
    settings.bucket_bytes = 2048;
    settings.world = grid.world();
    settings.replicas = grid.replicas();
    nn::Sequential module{nullptr};
    std::unique_ptr<Engine> engine;
    const auto make = [&] {
      module = nn::Sequential(std::dynamic_pointer_cast<nn::SequentialImpl>(Perceptron()));
      return module.ptr();
    };
    std::unique_ptr<DeferredModule> model;
    turns.Construct(rank, [&] {
      if (deferred) model = std::make_unique<DeferredModule>(make);
      if (!deferred) make();
    });
    engine = deferred ? std::make_unique<Engine>(*model, grid.shard(), settings)
                      : std::make_unique<Engine>(*module, grid.shard(), settings);
    model.reset();
    const Outcome own = Train(*engine, module, rank);
    if (rank == 0) outcome = own;
  });
  return outcome;
}

TEST(DeferredModule, TrainsAsTheWholeModuleToTheBit) {
  for (const int ranks : {1, 4}) {
    for (const int stage : {0, 1, 2, 3}) {
      const int group = ranks == 4 && stage >= 2 ? 2 : 0;
      const Outcome whole = TrainOnThreads(false, ranks, stage, group);
      ASSERT_EQ(whole.losses.size(), 4u);
      EXPECT_EQ(TrainOnThreads(true, ranks, stage, group), whole) << ranks << " ranks, stage " << stage;
    }
  }
}

constexpr int kLayers = 32;
constexpr int64_t kWidth = 256;

// All ranks make their engines of stage 3. Returns their common peak memory divided by the number of ranks.
// Memory that was already in use is not counted.
int64_t PeakOfARank(bool deferred, int ranks) {
  Turns turns(ranks);
  int64_t peak = 0;
  RunRankThreads(ranks, 3, [&](ProcessGroup* group) {
    const auto make = [] {
      nn::Sequential module;
      for (int layer = 0; layer < kLayers; ++layer) module->push_back(nn::Linear(kWidth, kWidth));
      return module.ptr();
    };
    EngineSettings settings;
    settings.stage = 3;
    settings.bucket_bytes = 4096;
    static int64_t before;
    if (group->rank() == 0) {
      TakePeriodPeak();
      before = ReadMemoryCounters().total.current;
    }
    turns.Await();
    Module module;
    std::unique_ptr<DeferredModule> model;
    turns.Construct(group->rank(), [&] {
      if (deferred) model = std::make_unique<DeferredModule>(make);
      module = deferred ? nullptr : make();
    });
    const std::unique_ptr<Engine> engine = deferred ? std::make_unique<Engine>(*model, group, settings)
                                                    : std::make_unique<Engine>(*module, group, settings);
    turns.Await();
    if (group->rank() == 0) peak = (TakePeriodPeak() - before) / ranks;
    turns.Await();
  });
  return peak;
}

TEST(DeferredModule, NoRankHoldsTheWholeModule) {
  static const bool counted = [] { return CountHostAllocations(), true; }();
  ASSERT_TRUE(counted);
  constexpr int kRanks = 8;
  constexpr int64_t kUnit = (kWidth * kWidth + kWidth) * 4, kWhole = kLayers * kUnit;
  // Master weights, two moments and sums of gradients, all in fp32.
  constexpr int64_t kStates = 4 * kWhole / kRanks;
  const int64_t whole = PeakOfARank(false, kRanks), deferred = PeakOfARank(true, kRanks);
  std::printf("peak of a rank, MiB: whole module %.2f, deferred %.2f; module %.2f, states of a rank %.2f\n",
              static_cast<double>(whole) / (1 << 20), static_cast<double>(deferred) / (1 << 20),
              static_cast<double>(kWhole) / (1 << 20), static_cast<double>(kStates) / (1 << 20));
  EXPECT_GE(whole, kWhole);
  // A unit that receives its values needs fp32 memory for the computed values, its flat memory, and some
  // padding.
  constexpr int64_t kBound = kStates + 4 * kUnit;
  static_assert(kBound < kWhole);
  EXPECT_LE(deferred, kBound);
}

std::string Failure(const std::function<Module()>& construct) {
  try {
    const DeferredModule model(construct);
  } catch (const std::invalid_argument& failure) {
    return failure.what();
  }
  return "";
}

TEST(DeferredModule, NamesWhatCannotBeConstructedWithoutMemory) {
  const auto with = [](const char* name, const std::function<at::Tensor()>& make) {
    return [=] {
      nn::Sequential module;
      module->push_back("layer", nn::Linear(2, 2));
      module->ptr(0)->register_parameter(name, make());
      return module.ptr();
    };
  };
  const at::Tensor outside = torch::randn({3, 5});
  EXPECT_THAT(Failure(with("table", [&] { return outside.mul(2); })),
              HasSubstr("parameter layer.table has memory already"));
  EXPECT_THAT(Failure(with("listed",
                           [] {
                             return torch::tensor(std::vector<float>{1, 2, 3});
                           })),
              AllOf(HasSubstr("the tensor [3]"), HasSubstr("aten::empty")));
  EXPECT_THAT(Failure(with("pointed",
                           [] {
                             at::Tensor made = torch::zeros({4, 2});
                             made.data_ptr<float>()[0] = 1;
                             return made;
                           })),
              AllOf(HasSubstr("the tensor [4, 2] that operation aten::zeros made")));
  EXPECT_THAT(Failure(with("elsewhere", [] { return torch::empty({2}, torch::kMeta); })),
              AllOf(HasSubstr("operation aten::empty"), HasSubstr("asks for memory on meta")));
  EXPECT_THAT(Failure([] { return Module(); }), HasSubstr("returned no module"));
  EXPECT_THAT(Failure(with("wrong", [] { return torch::ones({2}).add(torch::ones({3})); })),
              AllOf(HasSubstr("the construction of a DeferredModule failed"), HasSubstr("size")));
}

TEST(DeferredModule, TensorsFromOutsideMayBeUsedButNotChanged) {
  at::Tensor outside = torch::arange(6, torch::kFloat);
  const auto copy = [&] {
    nn::Sequential module{nn::Linear(2, 3)};
    const torch::NoGradGuard no_gradients;
    module->ptr(0)->as<nn::Linear>()->weight.copy_(outside.view({3, 2}));
    return module.ptr();
  };
  const DeferredModule model(copy);
  const at::Tensor weight = model.module().named_parameters()["0.weight"];
  ExpectEqualBytes(model.FirstValues(weight), outside.view({3, 2}), "copied");
  outside.add_(1);
  EXPECT_THROW(model.FirstValues(weight), std::invalid_argument);
}

// A tensor that is neither a parameter nor a buffer gets no memory. Using it must be an error that says what
// to do.
TEST(DeferredModule, TensorsThatAreNotRegisteredAreNamedWhenUsed) {
  RunRankThreads(1, 3, [](ProcessGroup* group) {
    nn::Linear layer{nullptr};
    at::Tensor scale;
    const DeferredModule model([&] {
      layer = nn::Linear(2, 2);
      scale = torch::full({2, 7}, 3.0);
      return layer.ptr();
    });
    Engine engine(model, group, {.stage = 3});
    try {
      engine.Forward([&] { return layer->forward(at::ones({7, 2}).mul(scale.t())).sum(); });
      FAIL() << "a tensor without memory was used";
    } catch (const c10::Error& failure) {
      EXPECT_THAT(failure.what(), AllOf(HasSubstr("[2, 7]"), HasSubstr("registered parameter or buffer")));
    }
  });
}

}  // namespace
}  // namespace dynamiccl::zero
