// SPDX-License-Identifier: Apache-2.0
#include "agents/trigger/invented_jobs.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace dynamiccl::agents {
namespace {

using Sizes = std::vector<int64_t>;  // elements, by parameter

// The model's blocks in order of use, some joined: unit 0, the root, first.
std::vector<Sizes> BlocksOf(const ModelShape& model, const InventedHabits& habits) {
  std::vector<Sizes> blocks;
  const auto units = UnitsOf(model);
  for (size_t unit = 0; unit < units.size(); ++unit) {
    if (unit % static_cast<size_t>(habits.blocks_together) == 0) blocks.emplace_back();
    for (const size_t index : units[unit]) {
      const ParameterShape& parameter = model.parameters[index];
      const int64_t parts = parameter.split == TensorSplit::kNone ? 1 : habits.world.tensor;
      blocks.back().push_back(std::max<int64_t>(parameter.Elements() / parts, 1));
    }
  }
  std::erase_if(blocks, [](const Sizes& block) { return block.empty(); });
  return blocks;
}

int64_t SumOf(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
}

// Equal pieces of the whole, the last one smaller.
Sizes Cut(int64_t whole, int64_t chunk) {
  Sizes pieces(static_cast<size_t>(whole / chunk), chunk);
  if (whole % chunk != 0) pieces.push_back(whole % chunk);
  return pieces;
}

// Where a stream of parameters is cut into messages.
class PieceCutter {
 public:
  explicit PieceCutter(const Traffic& traffic) : traffic_(traffic) {}

  // Messages that are complete with this block.
  Sizes Add(const Sizes& block) {
    switch (traffic_.pieces) {
      case Pieces::kParameters:
        return block;
      case Pieces::kBlocks:
        return {SumOf(block)};
      case Pieces::kWhole:
        open_ += SumOf(block);
        return {};
      case Pieces::kChunks:
        break;
    }
    Sizes full;
    for (const int64_t elements : block) {
      open_ += elements;
      if (open_ < traffic_.chunk) continue;
      full.push_back(open_);
      open_ = 0;
    }
    return full;
  }
  // What is left, at the end.
  Sizes Rest() {
    const int64_t rest = std::exchange(open_, 0);
    return rest == 0 ? Sizes{} : Sizes{rest};
  }

 private:
  const Traffic& traffic_;
  int64_t open_ = 0;
};

class InventedStep {
 public:
  InventedStep(const ModelShape& model, const InventedHabits& habits, OperationList& list)
      : model_(model), habits_(habits), list_(list), blocks_(BlocksOf(model, habits)) {}

  void Construct();
  void Run(int step);

 private:
  void Forward(bool gathers_updated);
  void Backward(bool reduce);
  void BackwardBlock(size_t block);
  void End();

  void SendBatch();
  void GatherParameters(size_t block);
  void GatherUpdated();
  void Gather(const Sizes& pieces, const Traffic& traffic, Role role);
  void GatherPiece(int64_t elements, const Traffic& traffic, Role role);
  void Reduce(const Sizes& pieces);
  void ReducePiece(int64_t elements);
  void Activations(int count);
  void Scalars(ScalarHabit::Moment moment);

  Axis axis() const { return habits_.world.ShardAxis(); }
  int ranks() const { return habits_.world.RanksOn(axis()); }
  int NextOwner() { return next_owner_++ % ranks(); }
  // Parameters of a block that stage 3 divides.
  Sizes Divided(const Sizes& block) const {
    Sizes divided = block;
    std::erase_if(divided, [&](int64_t elements) { return elements <= habits_.kept_elements; });
    return divided;
  }

  const ModelShape& model_;
  const InventedHabits& habits_;
  OperationList& list_;
  const std::vector<Sizes> blocks_;
  std::vector<bool> gathered_;  // in this backward
  Sizes unsummed_;              // over replicas
  int next_owner_ = 0;
};

void InventedStep::Construct() {
  list_.SetPhase(Phase::kOther);
  if (!habits_.sends_parameters_first) return;
  for (const Sizes& block : blocks_) {
    const Sizes pieces = habits_.parameters.pieces == Pieces::kParameters ? block : Sizes{SumOf(block)};
    for (const int64_t elements : pieces) list_.Broadcast(elements, habits_.parameters.type, 0, Role::kOther);
  }
}

void InventedStep::GatherPiece(int64_t elements, const Traffic& traffic, Role role) {
  const int64_t padded = RoundUp(elements, ranks());
  if (traffic.exchange == Exchange::kCollective) {
    list_.AllGather(padded, traffic.type, role, axis());
  } else if (traffic.exchange == Exchange::kOneOwner) {
    list_.Broadcast(elements, traffic.type, NextOwner(), role, axis());
  } else {
    for (int owner = 0; owner < ranks(); ++owner)
      list_.Broadcast(padded / ranks(), traffic.type, owner, role, axis());
  }
}

void InventedStep::Gather(const Sizes& pieces, const Traffic& traffic, Role role) {
  if (traffic.grouped) list_.BeginGroup();
  for (const int64_t elements : pieces) GatherPiece(elements, traffic, role);
  if (traffic.grouped) list_.EndGroup();
}

void InventedStep::ReducePiece(int64_t elements) {
  const Traffic& traffic = habits_.gradients;
  const int64_t padded = RoundUp(elements, ranks());
  if (habits_.gradient_collective == Collective::kAllReduce) {
    list_.AllReduce(elements, traffic.type, habits_.gradient_op, Role::kGradientReduce, axis());
  } else if (traffic.exchange == Exchange::kCollective) {
    list_.ReduceScatter(padded, traffic.type, habits_.gradient_op, Role::kGradientReduce, axis());
  } else if (traffic.exchange == Exchange::kOneOwner) {
    list_.Reduce(elements, traffic.type, habits_.gradient_op, NextOwner(), Role::kGradientReduce, axis());
  } else {
    for (int owner = 0; owner < ranks(); ++owner)
      list_.Reduce(padded / ranks(), traffic.type, habits_.gradient_op, owner, Role::kGradientReduce, axis());
  }
  if (habits_.world.IsHybrid()) unsummed_.push_back(padded / ranks());
}

void InventedStep::Reduce(const Sizes& pieces) {
  // A group is of one communicator, so that sums over replicas follow it.
  if (habits_.gradients.grouped) list_.BeginGroup();
  for (const int64_t elements : pieces) ReducePiece(elements);
  if (habits_.gradients.grouped) list_.EndGroup();
  if (habits_.replicas_at_end) return;
  for (const int64_t elements : std::exchange(unsummed_, {}))
    list_.AllReduce(elements, habits_.gradients.type, habits_.gradient_op, Role::kGradientReduce,
                    Axis::kReplicate);
}

void InventedStep::Activations(int count) {
  if (habits_.world.tensor == 1) return;
  const DataType type = habits_.activation_type;
  const int64_t elements = habits_.activation_elements;
  for (int i = 0; i < count; ++i) {
    if (habits_.activations_split) {
      list_.AllGather(elements, type, Role::kActivation, Axis::kTensor);
      list_.ReduceScatter(elements, type, ReduceOp::kSum, Role::kActivation, Axis::kTensor);
    } else {
      list_.AllReduce(elements, type, ReduceOp::kSum, Role::kActivation, Axis::kTensor);
    }
  }
}

void InventedStep::Scalars(ScalarHabit::Moment moment) {
  for (const ScalarHabit& scalar : habits_.scalars) {
    if (scalar.moment == moment)
      list_.AllReduce(scalar.elements, scalar.type, scalar.op, Role::kScalar, scalar.axis);
  }
}

void InventedStep::SendBatch() {
  if (habits_.sends_buffers) {
    list_.Broadcast(model_.float_buffers, DataType::kFloat32, 0, Role::kOther);
    list_.Broadcast(model_.integer_buffers, DataType::kInt64, 0, Role::kOther);
  }
  if (!habits_.sends_batch) return;
  for (int i = 0; i < 2; ++i)
    list_.Broadcast(habits_.tokens, DataType::kInt64, 0, Role::kOther, Axis::kTensor);
}

void InventedStep::GatherParameters(size_t block) {
  if (habits_.stage != ZeroStage::kStage3 || gathered_[block]) return;
  gathered_[block] = true;
  PieceCutter cutter(habits_.parameters);
  Sizes pieces = cutter.Add(Divided(blocks_[block]));
  const Sizes rest = cutter.Rest();
  pieces.insert(pieces.end(), rest.begin(), rest.end());
  Gather(pieces, habits_.parameters, Role::kParameterGather);
}

void InventedStep::Forward(bool gathers_updated) {
  list_.SetPhase(Phase::kForward);
  SendBatch();
  gathered_.assign(blocks_.size(), false);
  PieceCutter cutter(habits_.gradients);
  for (size_t block = 0; block < blocks_.size(); ++block) {
    GatherParameters(block);
    if (gathers_updated) Gather(cutter.Add(blocks_[block]), habits_.updated, Role::kPostStepGather);
    Activations(habits_.activations_forward);
  }
  if (gathers_updated) Gather(cutter.Rest(), habits_.updated, Role::kPostStepGather);
  for (int i = 0; i < habits_.head_sums; ++i)
    list_.AllReduce(habits_.tokens, DataType::kFloat32, i == 0 ? ReduceOp::kMax : ReduceOp::kSum,
                    Role::kActivation, Axis::kTensor);
  Scalars(ScalarHabit::Moment::kForwardEnd);
}

void InventedStep::BackwardBlock(size_t block) {
  if (habits_.gather_in_backward) {
    GatherParameters(block);
    if (habits_.prefetch && block > 0) GatherParameters(block - 1);
  }
  if (habits_.recompute) Activations(habits_.activations_forward);
  Activations(habits_.activations_backward);
}

void InventedStep::Backward(bool reduce) {
  list_.SetPhase(Phase::kBackward);
  gathered_.assign(blocks_.size(), !habits_.gather_in_backward);
  PieceCutter cutter(habits_.gradients);
  Sizes late;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const size_t block = blocks_.size() - 1 - i;
    BackwardBlock(block);
    if (!reduce) continue;
    const bool reversed = habits_.gradients.reversed || !habits_.after_backward;
    Sizes sizes = blocks_[reversed ? block : i];
    if (reversed) std::reverse(sizes.begin(), sizes.end());
    const Sizes pieces = cutter.Add(sizes);
    if (!habits_.after_backward) Reduce(pieces);
    if (habits_.after_backward) late.insert(late.end(), pieces.begin(), pieces.end());
  }
  const Sizes rest = cutter.Rest();
  late.insert(late.end(), rest.begin(), rest.end());
  Reduce(late);
  if (reduce && habits_.sends_used_map)
    list_.AllReduce(static_cast<int64_t>(model_.parameters.size()), DataType::kInt32, ReduceOp::kSum,
                    Role::kOther);
}

void InventedStep::GatherUpdated() {
  std::vector<Sizes> blocks = blocks_;
  if (habits_.stage == ZeroStage::kStage3) {
    for (Sizes& block : blocks)
      std::erase_if(block, [&](int64_t elements) { return elements > habits_.kept_elements; });
  }
  Sizes all;
  for (Sizes& block : blocks) all.insert(all.end(), block.begin(), block.end());
  if (all.empty()) return;
  const Traffic& traffic = habits_.updated;
  Sizes pieces = all;
  if (traffic.pieces == Pieces::kWhole) pieces = {SumOf(all)};
  if (traffic.pieces == Pieces::kChunks) pieces = Cut(SumOf(all), traffic.chunk);
  if (traffic.pieces == Pieces::kBlocks) {
    pieces.clear();
    for (const Sizes& block : blocks) pieces.push_back(SumOf(block));
    std::erase(pieces, 0);
  }
  if (traffic.reversed) std::reverse(pieces.begin(), pieces.end());
  Gather(pieces, traffic, Role::kPostStepGather);
}

void InventedStep::End() {
  list_.SetPhase(Phase::kOptimizer);
  for (const int64_t elements : std::exchange(unsummed_, {}))
    list_.AllReduce(elements, habits_.gradients.type, habits_.gradient_op, Role::kGradientReduce,
                    Axis::kReplicate);
  if (habits_.world.tensor > 1 && habits_.sums_shared_gradients) {
    int64_t shared = 0;
    for (const ParameterShape& parameter : model_.parameters)
      if (parameter.split == TensorSplit::kNone) shared += parameter.Elements();
    list_.AllReduce(shared, habits_.gradients.type, ReduceOp::kSum, Role::kGradientReduce, Axis::kTensor);
  }
  Scalars(ScalarHabit::Moment::kBeforeUpdate);
  if (habits_.stage != ZeroStage::kStage0 && !habits_.updated_in_forward) GatherUpdated();
  Scalars(ScalarHabit::Moment::kAfterUpdate);
}

void InventedStep::Run(int step) {
  for (int micro = 1; micro <= habits_.micro_steps; ++micro) {
    const bool divided = habits_.stage != ZeroStage::kStage0;
    Forward(divided && habits_.updated_in_forward && step > 0 && micro == 1);
    Backward(habits_.each_pass || micro == habits_.micro_steps);
  }
  End();
}

}  // namespace

GeneratedRun InventedRun(const ModelShape& model, const InventedHabits& habits, int steps) {
  GeneratedRun run{std::string(kInvented), habits.world, StageToTell(habits), {}, {}};
  OperationList before;
  InventedStep(model, habits, before).Construct();
  run.construction = before.Take();
  for (int step = 0; step < steps; ++step) {
    OperationList list;
    InventedStep(model, habits, list).Run(step);
    run.steps.push_back(list.Take());
  }
  return run;
}

}  // namespace dynamiccl::agents
