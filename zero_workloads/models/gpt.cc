// SPDX-License-Identifier: Apache-2.0
// The forward pass: x = token embedding + position embedding; x = block(x) for each block; logits =
// head(norm(x)); loss = cross entropy in fp32. `hooks` are called before the parameters of a unit are first
// read and after they are last used.
#include "zero_workloads/models/gpt.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>

#include <cmath>

#include "zero_workloads/models/vocabulary_loss.h"

namespace dynamiccl::zero {

Gpt::Gpt(const GptShape& shape, const TensorSplit& split, BlockUnits block_units)
    // GPT-2 draws the first values of token embeddings with standard deviation 0.02, and those of positions
    // with 0.01.
    : split_(split),
      block_units_(block_units),
      token_embedding_({shape.vocabulary, shape.hidden, 0.02f}, split),
      position_embedding_({shape.sequence, shape.hidden, 0.01f}, split),
      last_norm_(shape.hidden),
      head_({shape.hidden, shape.vocabulary, 0.02f}, split) {
  const float output_deviation = 0.02f / std::sqrt(2.0f * static_cast<float>(shape.layers));
  const BlockShape block{shape.hidden, shape.heads, output_deviation};
  for (int64_t i = 0; i < shape.layers; ++i) {
    blocks_.push_back(std::make_unique<TransformerBlock>(block, split));
  }
}

size_t Gpt::InnerUnits() const {
  return block_units_ == BlockUnits::kHalves ? 2 * blocks_.size() : blocks_.size();
}

void Gpt::ListInnerParameters(size_t index, ParameterList* list) {
  const bool halves = block_units_ == BlockUnits::kHalves;
  const size_t number = halves ? index / 2 : index;
  const std::string prefix = "block." + std::to_string(number);
  if (!halves) {
    blocks_[number]->ListParameters(prefix, list);
  } else if (index % 2 == 0) {
    blocks_[number]->ListAttentionParameters(prefix, list);
  } else {
    blocks_[number]->ListFeedForwardParameters(prefix, list);
  }
}

UnitForward Gpt::InnerForward(size_t index) const {
  if (block_units_ == BlockUnits::kWhole) {
    return [block = blocks_[index].get()](const at::Tensor& in) { return block->forward(in); };
  }
  const TransformerBlock* const block = blocks_[index / 2].get();
  if (index % 2 == 0) return [block](const at::Tensor& in) { return block->AttentionHalf(in); };
  return [block](const at::Tensor& in) { return block->FeedForwardHalf(in); };
}

std::vector<ModelUnit> Gpt::Units() {
  std::vector<ModelUnit> units(1 + InnerUnits());
  units[0].name = "root";
  units[0].is_root = true;
  token_embedding_.ListParameters("root.token_embedding", &units[0].parameters);
  position_embedding_.ListParameters("root.position_embedding", &units[0].parameters);
  last_norm_.ListParameters("root.last_norm", &units[0].parameters);
  head_.ListParameters("root.head", &units[0].parameters);
  for (size_t i = 0; i < InnerUnits(); ++i) {
    units[i + 1].name = (block_units_ == BlockUnits::kHalves ? "half." : "block.") + std::to_string(i);
    ListInnerParameters(i, &units[i + 1].parameters);
  }
  return units;
}

at::Tensor Gpt::Loss(const at::Tensor& tokens, const at::Tensor& targets, int64_t reduction,
                     UnitHooks* hooks) const {
  hooks->BeforeForward(0);
  at::Tensor x = token_embedding_.forward(tokens) + position_embedding_.forward(tokens.size(1));
  for (size_t i = 0; i < InnerUnits(); ++i) {
    const int unit = static_cast<int>(i) + 1;
    hooks->BeforeForward(unit);
    x = hooks->Forward(unit, InnerForward(i), x);
    hooks->AfterForward(unit, x);
  }
  const at::Tensor logits = head_.forward(last_norm_.forward(x)).to(at::kFloat);
  hooks->AfterForward(0, {});
  return VocabularyLoss(logits.flatten(0, 1), targets.flatten(), reduction, split_);
}

at::Tensor Gpt::MeanLoss(const at::Tensor& tokens, const at::Tensor& targets, UnitHooks* hooks) const {
  return Loss(tokens, targets, at::Reduction::Mean, hooks);
}

at::Tensor Gpt::LossPerToken(const at::Tensor& tokens, const at::Tensor& targets, UnitHooks* hooks) const {
  return Loss(tokens, targets, at::Reduction::None, hooks);
}

}  // namespace dynamiccl::zero
