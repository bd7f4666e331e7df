// SPDX-License-Identifier: Apache-2.0
// Compares the trainer's layers and optimizer with LibTorch's functional operations and with plain formulas.
// First values and batches must not depend on how the work is divided.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <span>

#include "zero_workloads/data/batch_loader.h"
#include "zero_workloads/models/gpt.h"
#include "zero_workloads/optimizer/adamw.h"
#include "zero_workloads/parallel/partition.h"
#include "zero_workloads/zero/flat_parameters.h"

namespace dynamiccl::zero {
namespace {

class NoHooks final : public UnitHooks {
 public:
  void BeforeForward(int) override {}
  void AfterForward(int, const at::Tensor&) override {}
};

// Gives every parameter of a list its own tensor, with normally distributed first values of deviation 0.1.
void Bind(const ParameterList& list, at::ScalarType type) {
  at::manual_seed(7);
  for (const ParameterSlot& slot : list) {
    *slot.tensor = (0.1 * at::randn(slot.shape, at::kDouble)).to(type);
    slot.tensor->set_requires_grad(true);
  }
}

// The same GPT, made of LibTorch's operations on leaf copies of the same parameters.
class ReferenceGpt {
 public:
  explicit ReferenceGpt(const std::vector<ModelUnit>& units) {
    for (const ModelUnit& unit : units) {
      for (const ParameterSlot& slot : unit.parameters) {
        leaves_[slot.name] = slot.tensor->detach().clone().set_requires_grad(true);
      }
    }
  }

  at::Tensor Loss(const at::Tensor& tokens, const at::Tensor& targets, int64_t layers, int64_t heads) {
    at::Tensor x = at::embedding(leaves_["root.token_embedding.weight"], tokens) +
                   leaves_["root.position_embedding.weight"].narrow(0, 0, tokens.size(1));
    for (int64_t i = 0; i < layers; ++i) x = Block(x, "block." + std::to_string(i), heads);
    return at::cross_entropy_loss(Affine(Norm(x, "root.last_norm"), "root.head").flatten(0, 1),
                                  targets.flatten());
  }

  at::Tensor gradient(const std::string& name) { return leaves_[name].grad(); }

 private:
  at::Tensor Affine(const at::Tensor& x, const std::string& name) {
    return at::matmul(x, leaves_[name + ".weight"].t()) + leaves_[name + ".bias"];
  }

  at::Tensor Norm(const at::Tensor& x, const std::string& name) {
    const at::Tensor centred = x - x.mean(-1, true);
    const at::Tensor variance = centred.square().mean(-1, true);
    return centred / at::sqrt(variance + 1e-5) * leaves_[name + ".weight"] + leaves_[name + ".bias"];
  }

  at::Tensor Block(const at::Tensor& x, const std::string& name, int64_t heads) {
    const int64_t batch = x.size(0), length = x.size(1), hidden = x.size(2);
    const auto split = [&](const at::Tensor& y) {
      return y.view({batch, length, heads, hidden / heads}).transpose(1, 2);
    };
    const auto qkv =
        Affine(Norm(x, name + ".attention_norm"), name + ".attention.query_key_value").chunk(3, -1);
    const at::Tensor scores =
        at::matmul(split(qkv[0]), split(qkv[1]).transpose(-2, -1)) / std::sqrt(hidden / heads);
    const at::Tensor hidden_future = at::ones({length, length}, at::kBool).triu(1);
    const at::Tensor weights = at::softmax(scores.masked_fill(hidden_future, -INFINITY), -1);
    const at::Tensor mixed = at::matmul(weights, split(qkv[2])).transpose(1, 2).reshape(x.sizes());
    const at::Tensor y = x + Affine(mixed, name + ".attention.project");
    const at::Tensor wide =
        at::gelu(Affine(Norm(y, name + ".feed_forward_norm"), name + ".feed_forward.expand"), "tanh");
    return y + Affine(wide, name + ".feed_forward.contract");
  }

  std::map<std::string, at::Tensor> leaves_;
};

TEST(Gpt, LossAndGradientsAreThoseOfTheFunctionalModel) {
  const GptShape shape{.layers = 2, .hidden = 24, .heads = 3, .sequence = 16, .vocabulary = 40};
  Gpt model(shape);
  const std::vector<ModelUnit> units = model.Units();
  for (const ModelUnit& unit : units) Bind(unit.parameters, at::kFloat);
  ReferenceGpt reference(units);
  // The text is shorter than the model's sequence length.
  const at::Tensor text = at::randint(shape.vocabulary, {3, 12}, at::kLong);
  const at::Tensor tokens = text.narrow(1, 0, 11), targets = text.narrow(1, 1, 11);
  NoHooks hooks;
  const at::Tensor loss = model.MeanLoss(tokens, targets, &hooks);
  const at::Tensor expected = reference.Loss(tokens, targets, shape.layers, shape.heads);
  EXPECT_NEAR(loss.item<double>(), expected.item<double>(), 1e-5);
  loss.backward();
  expected.backward();
  for (const ModelUnit& unit : units) {
    for (const ParameterSlot& slot : unit.parameters) {
      EXPECT_TRUE(at::allclose(slot.tensor->grad(), reference.gradient(slot.name), 1e-3, 1e-5)) << slot.name;
    }
  }
}

TEST(Attention, NaiveAndFusedAgree) {
  at::manual_seed(3);
  const auto random = [] { return at::randn({2, 3, 9, 8}); };
  const at::Tensor query = random(), key = random(), value = random();
  EXPECT_TRUE(at::allclose(NaiveCausalAttention(query, key, value),
                           at::scaled_dot_product_attention(query, key, value, {}, 0.0, true), 1e-4, 1e-5));
}

TEST(FirstValues, AreTheSameInPiecesAndHaveTheDeviationAskedFor) {
  const ParameterSlot slot{"block.0.weight", {100, 50}, {0.5f, 0.02f}, nullptr};
  std::vector<float> whole(5000), piece(1234);
  FillInitialValues(slot, 9, 0, 5000, whole.data());
  FillInitialValues(slot, 9, 1000, 2234, piece.data());
  EXPECT_TRUE(std::equal(piece.begin(), piece.end(), whole.begin() + 1000));
  const at::Tensor values = at::tensor(whole).to(at::kDouble);
  // The tolerance is five standard errors.
  EXPECT_NEAR(values.mean().item<double>(), 0.5, 5 * 0.02 / std::sqrt(5000));
  EXPECT_NEAR(values.std().item<double>(), 0.02, 5 * 0.02 / std::sqrt(2 * 5000));
  ParameterSlot other = slot;
  other.name = "block.1.weight";
  FillInitialValues(other, 9, 1000, 2234, piece.data());
  EXPECT_FALSE(std::equal(piece.begin(), piece.end(), whole.begin() + 1000));
}

TEST(FirstValues, OfASliceAreThoseOfTheWholeParameter) {
  const ParameterSlot whole{"w", {3, 8, 5}, {0.0f, 1.0f}, nullptr};
  std::vector<float> all(3 * 8 * 5);
  FillInitialValues(whole, 4, 0, 120, all.data());
  const at::Tensor values = at::tensor(all).view({3, 8, 5});
  const std::vector<int64_t> shape = whole.shape;
  for (int dimension = 0; dimension < 3; ++dimension) {
    const int64_t extent = shape[static_cast<size_t>(dimension)];
    for (int64_t begin = 0; begin < extent; ++begin) {
      for (int64_t length = 1; begin + length <= extent; ++length) {
        ParameterSlot slice{"w", shape, {0.0f, 1.0f}, nullptr, shape, dimension, begin};
        slice.shape[static_cast<size_t>(dimension)] = length;
        std::vector<float> part(static_cast<size_t>(slice.Elements()));
        FillInitialValues(slice, 4, 0, slice.Elements(), part.data());
        EXPECT_TRUE(at::equal(at::tensor(part).view(slice.shape), values.narrow(dimension, begin, length)));
        EXPECT_EQ(slice.GlobalElements(), 120);
      }
    }
  }
}

TEST(FlatParameters, AnyCutOfTheFlatGradientHoldsTheParametersGradients) {
  Gpt model({.layers = 1, .hidden = 20, .heads = 2, .sequence = 8, .vocabulary = 17});
  FlatParameters parameters(model.Units()[1]);
  const int64_t padded = RoundUp(parameters.elements(), 3 * kShardAlignment);
  parameters.Bind(padded, at::kFloat);
  at::Tensor expected = at::zeros({padded});
  parameters.ForEachParameter(0, padded, [&](size_t i, int64_t, int64_t end) {
    const at::Tensor& parameter = *parameters.unit().parameters[i].tensor;
    EXPECT_EQ(parameter.data_ptr<float>(), parameters.flat().data_ptr<float>() + parameters.offset(i));
    EXPECT_EQ(parameters.offset(i) % kParameterAlignment, 0);
    const at::Tensor gradient = at::randn(parameter.sizes());
    parameter.mutable_grad() = gradient;
    expected.narrow(0, parameters.offset(i), end).copy_(gradient.flatten());
  });
  for (const auto& [begin, end] :
       {std::pair<int64_t, int64_t>{0, padded}, {1, 2}, {31, 700}, {padded - 5, padded}}) {
    const at::Tensor cut = at::full({end - begin}, NAN);
    parameters.CopyGradients(begin, cut);
    EXPECT_TRUE(at::equal(cut, expected.narrow(0, begin, end - begin))) << begin << " to " << end;
  }
}

TEST(BatchLoader, RanksTogetherReadTheBatchOfOneRank) {
  std::vector<uint8_t> text(1000);
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<uint8_t>(i * 7);
  const Batch whole = BatchLoader(text, {6, 10, 0, 1}, 5, at::kCPU).TrainingBatch(3);
  std::vector<at::Tensor> parts;
  for (int rank = 0; rank < 3; ++rank) {
    parts.push_back(BatchLoader(text, {6, 10, rank, 3}, 5, at::kCPU).TrainingBatch(3).tokens);
  }
  EXPECT_TRUE(at::equal(at::cat(parts), whole.tokens));
  EXPECT_TRUE(at::equal(whole.tokens.narrow(1, 1, 9), whole.targets.narrow(1, 0, 9)));
}

TEST(ConsecutiveBatch, CountsEveryByteButTheFirstOnce) {
  const std::vector<uint8_t> text(23, 'x');
  int64_t targets = 0;
  for (int64_t first = 0; first < 8; first += 2) {
    targets += ConsecutiveBatch(text, 5, first, 2, at::kCPU).targets.eq('x').sum().item<int64_t>();
  }
  EXPECT_EQ(targets, 22);
}

TEST(AdamW, FollowsThePublishedFormula) {
  const AdamWSettings settings{.beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .weight_decay = 0.1};
  const at::Tensor start = at::linspace(-1, 1, 64), gradient = at::linspace(2, -1, 64);
  AdamW optimizer({start.clone(), at::zeros_like(start), at::zeros_like(start)}, settings);
  at::Tensor weight = start.to(at::kDouble), first = at::zeros({64}, at::kDouble),
             second = at::zeros_like(first);
  for (int step = 1; step <= 5; ++step) {
    optimizer.Step(gradient * step, 1e-2, {});
    const at::Tensor g = gradient.to(at::kDouble) * step;
    weight = weight * (1 - 1e-2 * settings.weight_decay);
    first = settings.beta1 * first + (1 - settings.beta1) * g;
    second = settings.beta2 * second + (1 - settings.beta2) * g.square();
    weight = weight - 1e-2 * (first / (1 - std::pow(settings.beta1, step))) /
                          (at::sqrt(second / (1 - std::pow(settings.beta2, step))) + settings.epsilon);
  }
  EXPECT_TRUE(at::allclose(optimizer.master().to(at::kDouble), weight, 1e-5, 1e-6));
}

}  // namespace
}  // namespace dynamiccl::zero
