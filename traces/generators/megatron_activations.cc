// SPDX-License-Identifier: Apache-2.0
// A block has two halves, attention and feed-forward. Without sequence parallelism each half ends in an
// AllReduce of its activations, forward and backward. With sequence parallelism an AllGather before the half
// and a ReduceScatter after it replace this AllReduce, and the backward pass gathers the input once more.
#include "traces/generators/megatron_activations.h"

namespace dynamiccl {
namespace {

// True for a learned embedding of positions.
bool IsPosition(const ParameterShape& parameter) {
  return parameter.name.starts_with("wpe.") || parameter.name.find("position") != std::string::npos;
}

// Learned positions are added before the activations are split, rotary ones after. Only in the latter case
// can the embedding's sum be a ReduceScatter.
bool HasLearnedPositions(const ModelShape& model) {
  for (const ParameterShape& parameter : model.parameters) {
    if (IsPosition(parameter)) return true;
  }
  return false;
}

}  // namespace

MegatronActivations::MegatronActivations(const GeneratorInput& input, OperationList& list)
    : input_(input),
      list_(list),
      active_(input.world.tensor > 1),
      sequence_parallel_(input.settings.Flag("sequence_parallel")),
      type_(input.settings.Type("dtype")) {
  if (!input.model.transformer) return;
  tokens_ = input.settings.Integer("micro_batch") * input.model.transformer->sequence;
  elements_ = tokens_ * input.model.transformer->hidden;
}

void MegatronActivations::Activation(Collective collective) {
  if (collective == Collective::kAllGather)
    list_.AllGather(elements_, type_, Role::kActivation, Axis::kTensor);
  else if (collective == Collective::kReduceScatter)
    list_.ReduceScatter(elements_, type_, ReduceOp::kSum, Role::kActivation, Axis::kTensor);
  else
    list_.AllReduce(elements_, type_, ReduceOp::kSum, Role::kActivation, Axis::kTensor);
}

void MegatronActivations::Tokens(DataType type) {
  list_.Broadcast(tokens_, type, 0, Role::kOther, Axis::kTensor);
}

void MegatronActivations::Batch() {
  if (!active_) return;
  Tokens(DataType::kInt64);    // tokens
  Tokens(DataType::kInt64);    // labels
  Tokens(DataType::kFloat32);  // loss mask
  Tokens(DataType::kInt64);    // positions
}

void MegatronActivations::EmbeddingForward() {
  if (!active_) return;
  const bool split = sequence_parallel_ && !HasLearnedPositions(input_.model);
  Activation(split ? Collective::kReduceScatter : Collective::kAllReduce);
}

void MegatronActivations::LayerForward() {
  if (!active_) return;
  for (int part = 0; part < 2; ++part) {  // attention, then the feed-forward part
    if (!sequence_parallel_) {
      Activation(Collective::kAllReduce);
      continue;
    }
    Activation(Collective::kAllGather);
    Activation(Collective::kReduceScatter);
  }
}

void MegatronActivations::HeadForward() {
  if (!active_) return;
  if (sequence_parallel_) Activation(Collective::kAllGather);
  // The ranks combine the largest logit, the target's logit, and the sum of exponentials.
  for (const ReduceOp op : {ReduceOp::kMax, ReduceOp::kSum, ReduceOp::kSum})
    list_.AllReduce(tokens_, DataType::kFloat32, op, Role::kActivation, Axis::kTensor);
}

void MegatronActivations::HeadBackward() {
  if (!active_) return;
  if (!sequence_parallel_) {
    Activation(Collective::kAllReduce);
    return;
  }
  Activation(Collective::kAllGather);  // the input again, for the weight's gradient
  Activation(Collective::kReduceScatter);
}

void MegatronActivations::LayerBackward() {
  if (!active_) return;
  if (input_.settings.Choice("recompute") == "full") {
    if (input_.settings.Flag("distribute_saved_activations")) Activation(Collective::kAllGather);
    LayerForward();
  }
  for (int part = 0; part < 2; ++part) {
    if (!sequence_parallel_) {
      Activation(Collective::kAllReduce);
      continue;
    }
    Activation(Collective::kAllGather);  // the gradient, into the row-parallel layer
    Activation(Collective::kAllGather);  // the input of the column-parallel layer again
    Activation(Collective::kReduceScatter);
  }
}

void MegatronActivations::EmbeddingBackward() {
  if (active_ && sequence_parallel_) Activation(Collective::kAllGather);
}

void MegatronActivations::SharedGradients() {
  if (!active_ || !sequence_parallel_) return;
  int64_t elements = 0;
  for (const ParameterShape& parameter : input_.model.parameters) {
    if (parameter.split == TensorSplit::kNone && !IsPosition(parameter)) elements += parameter.Elements();
  }
  list_.AllReduce(elements, input_.settings.Type("gradient_dtype"), ReduceOp::kSum, Role::kGradientReduce,
                  Axis::kTensor);
}

}  // namespace dynamiccl
