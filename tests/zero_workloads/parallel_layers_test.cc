// SPDX-License-Identifier: Apache-2.0
// Compares each divided layer, on all ranks of a tensor group, with the whole layer made of LibTorch's
// operations. Outputs and gradients are compared in double, for random shapes.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/zero_workloads/rank_threads.h"
#include "zero_workloads/models/transformer_block.h"
#include "zero_workloads/models/vocabulary_loss.h"

namespace dynamiccl::zero {
namespace {

// The part of a [batch, sequence, width] tensor that a rank holds.
enum class Part { kWhole, kPositions, kColumns };

at::Tensor Cut(const at::Tensor& whole, Part part, const TensorSplit& split) {
  if (part == Part::kWhole) return whole;
  const int64_t dimension = part == Part::kPositions ? 1 : 2, extent = whole.size(dimension);
  return whole.narrow(dimension, split.share_begin(extent), split.share(extent));
}

// Returns those elements of a whole parameter that a slot holds.
at::Tensor SliceFor(const ParameterSlot& slot, const at::Tensor& whole) {
  at::Tensor indices = at::empty({slot.Elements()}, at::kLong);
  for (int64_t i = 0; i < slot.Elements(); ++i) indices.data_ptr<int64_t>()[i] = slot.GlobalIndex(i);
  return whole.flatten().index_select(0, indices).view(slot.shape).clone();
}

std::map<std::string, ParameterSlot> BindRandom(const ParameterList& list) {
  std::map<std::string, ParameterSlot> slots;
  for (const ParameterSlot& slot : list) {
    *slot.tensor = at::randn(slot.shape, at::kDouble).set_requires_grad(true);
    slots.emplace(slot.name, slot);
  }
  return slots;
}

void ExpectClose(const at::Tensor& value, const at::Tensor& expected, const std::string& what) {
  ASSERT_EQ(value.sizes(), expected.sizes()) << what;
  EXPECT_TRUE(at::allclose(value, expected, 1e-10, 1e-10))
      << what << ": " << (value - expected).abs().max().item<double>();
}

struct LayerCase {
  at::Tensor input;  // the whole input
  Part input_part, output_part;
  bool sequence_parallel = false;
};

// `make(split)` returns a unique_ptr to a layer. Without a group the layer is whole.
template <typename Make>
void ExpectSameAsWhole(const Make& make, const LayerCase& layer_case, int ranks) {
  const auto whole = make(TensorSplit{});
  ParameterList list;
  whole->ListParameters("layer", &list);
  const std::map<std::string, ParameterSlot> wholes = BindRandom(list);
  const bool differentiable = layer_case.input.is_floating_point();
  const at::Tensor input = layer_case.input.clone().set_requires_grad(differentiable);
  const at::Tensor output = whole->forward(input), weight = at::randn_like(output);
  (output * weight).sum().backward();

  RunGridThreads({ranks, ranks}, [&](Grid& grid) {
    const TensorSplit split{grid.tensor(), layer_case.sequence_parallel};
    const auto own = make(split);
    ParameterList own_list;
    own->ListParameters("layer", &own_list);
    for (const ParameterSlot& slot : own_list) {
      EXPECT_EQ(slot.GlobalElements(), wholes.at(slot.name).Elements());
      *slot.tensor = SliceFor(slot, wholes.at(slot.name).tensor->detach()).set_requires_grad(true);
    }
    const at::Tensor own_input =
        Cut(layer_case.input, layer_case.input_part, split).clone().set_requires_grad(differentiable);
    const at::Tensor own_output = own->forward(own_input);
    ExpectClose(own_output, Cut(output, layer_case.output_part, split), "output");
    (own_output * Cut(weight, layer_case.output_part, split)).sum().backward();
    if (differentiable) {
      ExpectClose(own_input.grad(), Cut(input.grad(), layer_case.input_part, split), "input's gradient");
    }
    for (const ParameterSlot& slot : own_list) {
      const at::Tensor gradient = slot.tensor->grad();
      if (split.sequence_parallel && !slot.sliced()) {
        grid.tensor()->AwaitOnHost(grid.tensor()->AllReduce(gradient, {}));
      }
      ExpectClose(gradient, SliceFor(slot, wholes.at(slot.name).tensor->grad()), slot.name);
    }
  });
}

struct RandomShape {
  int ranks;
  int64_t batch, sequence, width, outputs;
};

// Runs `check` on random shapes that the ranks can divide, with whole and with split sequences.
void OnRandomShapes(uint32_t seed,
                    const std::function<void(const RandomShape&, bool sequence_parallel)>& check) {
  std::mt19937 random(seed);
  const auto from = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int round = 0; round < 6; ++round) {
    const int ranks = 2 + round % 3;
    const RandomShape shape{ranks, from(1, 3), ranks * from(1, 4), ranks * from(1, 5), ranks * from(1, 5)};
    for (const bool sequence_parallel : {false, true}) {
      SCOPED_TRACE(fmt::format(
          "seed {}: {} ranks, batch {}, sequence {}, width {}, outputs {}, split sequence {}", seed, ranks,
          shape.batch, shape.sequence, shape.width, shape.outputs, sequence_parallel));
      at::manual_seed(seed + static_cast<uint32_t>(round));
      check(shape, sequence_parallel);
    }
  }
}

Part Outside(bool sequence_parallel) {
  return sequence_parallel ? Part::kPositions : Part::kWhole;
}

TEST(ParallelLayers, ColumnParallelLinear) {
  OnRandomShapes(11, [](const RandomShape& shape, bool sequence_parallel) {
    const LinearShape linear{shape.width, shape.outputs};
    ExpectSameAsWhole(
        [&](const TensorSplit& split) { return std::make_unique<ColumnParallelLinear>(linear, split); },
        {at::randn({shape.batch, shape.sequence, shape.width}, at::kDouble), Outside(sequence_parallel),
         Part::kColumns, sequence_parallel},
        shape.ranks);
  });
}

TEST(ParallelLayers, RowParallelLinear) {
  OnRandomShapes(12, [](const RandomShape& shape, bool sequence_parallel) {
    const LinearShape linear{shape.width, shape.outputs};
    ExpectSameAsWhole(
        [&](const TensorSplit& split) { return std::make_unique<RowParallelLinear>(linear, split); },
        {at::randn({shape.batch, shape.sequence, shape.width}, at::kDouble), Part::kColumns,
         Outside(sequence_parallel), sequence_parallel},
        shape.ranks);
  });
}

TEST(ParallelLayers, TokenEmbedding) {
  OnRandomShapes(13, [](const RandomShape& shape, bool sequence_parallel) {
    const EmbeddingShape embedding{shape.outputs, shape.width};
    ExpectSameAsWhole(
        [&](const TensorSplit& split) { return std::make_unique<TokenEmbedding>(embedding, split); },
        {at::randint(shape.outputs, {shape.batch, shape.sequence}, at::kLong), Part::kWhole,
         Outside(sequence_parallel), sequence_parallel},
        shape.ranks);
  });
}

TEST(ParallelLayers, TransformerBlock) {
  OnRandomShapes(14, [](const RandomShape& shape, bool sequence_parallel) {
    const BlockShape block{4 * shape.width, shape.width, 0.02f};
    ExpectSameAsWhole(
        [&](const TensorSplit& split) { return std::make_unique<TransformerBlock>(block, split); },
        {at::randn({shape.batch, shape.sequence, block.hidden}, at::kDouble), Outside(sequence_parallel),
         Outside(sequence_parallel), sequence_parallel},
        shape.ranks);
  });
}

TEST(ParallelLayers, VocabularyLoss) {
  OnRandomShapes(15, [](const RandomShape& shape, bool) {
    const int64_t count = shape.batch * shape.sequence, vocabulary = shape.outputs;
    const at::Tensor targets = at::randint(vocabulary, {count}, at::kLong);
    targets[0] = -100;
    // The logits are so large that exponentials overflow unless the largest logit is subtracted.
    const at::Tensor whole = (at::randn({count, vocabulary}, at::kDouble) * 2000).set_requires_grad(true);
    for (const int64_t reduction : {at::Reduction::Mean, at::Reduction::None}) {
      const at::Tensor expected = VocabularyLoss(whole, targets, reduction, {});
      whole.mutable_grad().reset();
      expected.sum().backward();
      RunGridThreads({shape.ranks, shape.ranks}, [&](Grid& grid) {
        const TensorSplit split{grid.tensor(), false};
        const int64_t begin = split.share_begin(vocabulary), length = split.share(vocabulary);
        const at::Tensor own = whole.detach().narrow(1, begin, length).clone().set_requires_grad(true);
        const at::Tensor loss = VocabularyLoss(own, targets, reduction, split);
        ExpectClose(loss, expected, "loss");
        loss.sum().backward();
        ExpectClose(own.grad(), whole.grad().narrow(1, begin, length), "logits' gradient");
      });
    }
  });
}

}  // namespace
}  // namespace dynamiccl::zero
