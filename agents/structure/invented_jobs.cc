// SPDX-License-Identifier: Apache-2.0
// Simulates a training step symbolically: a forward pass over the blocks, a backward pass in reverse, and the
// end of the step, each emitting operations as the habits say. A stream of parameters is cut into messages by
// PieceCutter, and messages are joined to NCCL groups by GroupEnd.
#include "agents/structure/invented_jobs.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

namespace dynamiccl::agents {
namespace {

// Number of elements of each message.
using Sizes = std::vector<int64_t>;

// A parameter, or one rank's part of a parameter that is split over the tensor-parallel ranks.
struct Part {
  int64_t elements;
  size_t block;
  // The parameter's name without its last component.
  std::string_view module;
  // The parameter's name from the block's number on, without the number. It is equal for corresponding
  // parameters of all blocks.
  std::string_view kind;
};
using Parts = std::vector<Part>;

Part PartOf(const ParameterShape& parameter, int tensor_ranks) {
  const std::string_view name = parameter.name,
                         module = name.substr(0, std::min(name.rfind('.'), name.size()));
  const size_t number = name.find_first_of("0123456789");
  const int64_t parts = parameter.split == TensorSplit::kNone ? 1 : tensor_ranks;
  return {
      std::max<int64_t>(parameter.Elements() / parts, 1), 0, module,
      number == std::string_view::npos ? name : name.substr(std::min(name.find('.', number), name.size()))};
}

// The model's units in the order of their use, where some neighbours are joined to one block. Unit 0, the
// root, comes first. If the head is separate, the root's parameters that are registered after the blocks form
// the last block.
std::vector<Parts> BlocksOf(const ModelShape& model, const InventedHabits& habits) {
  std::vector<Parts> blocks;
  Parts head;
  const auto units = UnitsOf(model);
  const size_t first_of_blocks = units.size() > 1 ? units[1].front() : model.parameters.size();
  for (size_t unit = 0; unit < units.size(); ++unit) {
    if (unit % static_cast<size_t>(habits.blocks_together) == 0) blocks.emplace_back();
    for (const size_t index : units[unit]) {
      const bool of_head = habits.head_is_apart && unit == 0 && index > first_of_blocks;
      (of_head ? head : blocks.back()).push_back(PartOf(model.parameters[index], habits.world.tensor));
    }
  }
  blocks.push_back(std::move(head));
  std::erase_if(blocks, [](const Parts& block) { return block.empty(); });
  for (size_t block = 0; block < blocks.size(); ++block)
    for (Part& part : blocks[block]) part.block = block;
  return blocks;
}

int64_t SumOf(const Parts& parts) {
  return std::accumulate(parts.begin(), parts.end(), int64_t{0},
                         [](int64_t sum, const Part& part) { return sum + part.elements; });
}

// Decides where a stream of parameters is cut into messages.
class PieceCutter {
 public:
  explicit PieceCutter(const Traffic& traffic) : traffic_(traffic) {}

  // The messages that are complete once these parameters have been added.
  Sizes Add(const Parts& parts) {
    Sizes full;
    for (size_t i = 0; i < parts.size(); ++i) {
      open_ += parts[i].elements;
      const bool last = i + 1 == parts.size();
      if (traffic_.pieces == Pieces::kChunks) {
        CutChunks(full);
      } else if (traffic_.pieces != Pieces::kWhole && (last || AreApart(parts[i], parts[i + 1]))) {
        full.push_back(std::exchange(open_, 0));
      }
    }
    return full;
  }
  // Returns the last, incomplete message. Call it at the end of the stream.
  Sizes Rest() {
    const int64_t rest = std::exchange(open_, 0);
    return rest == 0 ? Sizes{} : Sizes{rest};
  }

 private:
  bool AreApart(const Part& a, const Part& b) const {
    if (traffic_.pieces == Pieces::kParameters || a.block != b.block) return true;
    return traffic_.pieces == Pieces::kModules && a.module != b.module;
  }
  void CutChunks(Sizes& full) {
    while (open_ >= traffic_.chunk) {
      full.push_back(traffic_.exact_chunks ? traffic_.chunk : open_);
      open_ -= full.back();
    }
  }

  const Traffic& traffic_;
  int64_t open_ = 0;
};

// Returns the index after the last message of the ncclGroup that begins at message `begin`.
size_t GroupEnd(const Sizes& pieces, size_t begin, const Traffic& traffic) {
  size_t end = begin + 1;
  if (traffic.grouping == Grouping::kAll) end = pieces.size();
  if (traffic.grouping == Grouping::kCount)
    end = std::min(begin + static_cast<size_t>(traffic.group_pieces), pieces.size());
  if (traffic.grouping == Grouping::kEqual)
    while (end < pieces.size() && pieces[end] == pieces[begin]) ++end;
  return end;
}

void Sort(Parts& parts, Order order) {
  if (order == Order::kReversed) std::reverse(parts.begin(), parts.end());
  if (order == Order::kLargestFirst)
    std::stable_sort(parts.begin(), parts.end(),
                     [](const Part& a, const Part& b) { return a.elements > b.elements; });
  if (order != Order::kKinds) return;
  std::map<std::string_view, size_t> first;
  for (size_t i = 0; i < parts.size(); ++i) first.emplace(parts[i].kind, i);
  std::stable_sort(parts.begin(), parts.end(),
                   [&](const Part& a, const Part& b) { return first[a.kind] < first[b.kind]; });
}

// Emits the operations of one step, or of the construction, into a list. A new object is made for each step.
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
  void GatherParameters(size_t block, bool in_backward);
  void GatherUpdated();
  void Gather(const Sizes& pieces, const Traffic& traffic, Role role, Axis axis);
  void GatherPiece(int64_t elements, const Traffic& traffic, Role role, Axis axis);
  void Reduce(const Sizes& pieces);
  void ReducePiece(int64_t elements);
  void Activations(int count);
  void Scalars(ScalarHabit::Moment moment);

  // The axis over which the model is partitioned.
  Axis axis() const { return habits_.second_copies ? Axis::kData : habits_.world.ShardAxis(); }
  int ranks() const { return habits_.world.RanksOn(axis()); }
  bool HasReplicas() const { return habits_.world.IsHybrid() && !habits_.second_copies; }
  bool IsKept(const Part& part) const { return part.elements <= habits_.kept_elements; }

  const ModelShape& model_;
  const InventedHabits& habits_;
  OperationList& list_;
  const std::vector<Parts> blocks_;
  // Element b is true once block b was gathered in the current pass.
  std::vector<bool> gathered_;
  // Reduced pieces that have not been summed over the replicas yet.
  Sizes unsummed_;
  // Counter of the pieces that were sent to one owner (Exchange::kOneOwner). The owner of the next piece is
  // this number modulo the number of ranks.
  int next_owner_ = 0;
};

void InventedStep::Construct() {
  list_.SetPhase(Phase::kOther);
  if (!habits_.sends_parameters_first) return;
  for (const Parts& block : blocks_) {
    if (habits_.parameters.pieces != Pieces::kParameters)
      list_.Broadcast(SumOf(block), habits_.parameters.type, 0, Role::kOther);
    else
      for (const Part& part : block) list_.Broadcast(part.elements, habits_.parameters.type, 0, Role::kOther);
  }
}

void InventedStep::GatherPiece(int64_t elements, const Traffic& traffic, Role role, Axis axis) {
  const int ranks = habits_.world.RanksOn(axis);
  const int64_t padded = RoundUp(elements, ranks);
  if (traffic.exchange == Exchange::kCollective) {
    list_.AllGather(padded, traffic.type, role, axis);
  } else if (traffic.exchange == Exchange::kOneOwner) {
    list_.Broadcast(elements, traffic.type, next_owner_++ % ranks, role, axis);
  } else {
    for (int owner = 0; owner < ranks; ++owner)
      list_.Broadcast(padded / ranks, traffic.type, owner, role, axis);
  }
}

void InventedStep::Gather(const Sizes& pieces, const Traffic& traffic, Role role, Axis axis) {
  for (size_t at = 0; at < pieces.size();) {
    const size_t end = GroupEnd(pieces, at, traffic);
    if (traffic.grouping != Grouping::kNone) list_.BeginGroup();
    for (; at < end; ++at) GatherPiece(pieces[at], traffic, role, axis);
    if (traffic.grouping != Grouping::kNone) list_.EndGroup();
  }
}

void InventedStep::ReducePiece(int64_t elements) {
  const Traffic& traffic = habits_.gradients;
  const int64_t padded = RoundUp(elements, ranks());
  if (habits_.gradient_collective == Collective::kAllReduce) {
    list_.AllReduce(elements, traffic.type, habits_.gradient_op, Role::kGradientReduce, axis());
  } else if (traffic.exchange == Exchange::kCollective) {
    list_.ReduceScatter(padded, traffic.type, habits_.gradient_op, Role::kGradientReduce, axis());
  } else if (traffic.exchange == Exchange::kOneOwner) {
    list_.Reduce(elements, traffic.type, habits_.gradient_op, next_owner_++ % ranks(), Role::kGradientReduce,
                 axis());
  } else {
    for (int owner = 0; owner < ranks(); ++owner)
      list_.Reduce(padded / ranks(), traffic.type, habits_.gradient_op, owner, Role::kGradientReduce, axis());
  }
  if (HasReplicas()) unsummed_.push_back(padded / ranks());
}

void InventedStep::Reduce(const Sizes& pieces) {
  const bool grouped = habits_.gradients.grouping != Grouping::kNone;
  for (size_t at = 0; at < pieces.size();) {
    const size_t end = GroupEnd(pieces, at, habits_.gradients);
    // An ncclGroup belongs to one communicator, so the sums over replicas follow after the group.
    if (grouped) list_.BeginGroup();
    for (; at < end; ++at) ReducePiece(pieces[at]);
    if (grouped) list_.EndGroup();
  }
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
    for (int i = 0; scalar.moment == moment && i < scalar.times; ++i)
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

// Gathers this block and the blocks that are fetched together with it, in the direction of the pass.
void InventedStep::GatherParameters(size_t block, bool in_backward) {
  if (habits_.stage != ZeroStage::kStage3 || gathered_[block]) return;
  Parts fetched;
  for (size_t i = 0; i < static_cast<size_t>(habits_.blocks_fetched); ++i) {
    const size_t next = in_backward ? block - i : block + i;
    if (next >= blocks_.size() || gathered_[next]) break;
    gathered_[next] = true;
    for (const Part& part : blocks_[next])
      if (!IsKept(part)) fetched.push_back(part);
  }
  PieceCutter cutter(habits_.parameters);
  Sizes pieces = cutter.Add(fetched);
  const Sizes rest = cutter.Rest();
  pieces.insert(pieces.end(), rest.begin(), rest.end());
  Gather(pieces, habits_.parameters, Role::kParameterGather,
         in_backward && habits_.second_copies ? Axis::kShard : axis());
}

void InventedStep::Forward(bool gathers_updated) {
  list_.SetPhase(Phase::kForward);
  SendBatch();
  gathered_.assign(blocks_.size(), false);
  PieceCutter cutter(habits_.gradients);
  for (size_t block = 0; block < blocks_.size(); ++block) {
    GatherParameters(block, false);
    if (gathers_updated) Gather(cutter.Add(blocks_[block]), habits_.updated, Role::kPostStepGather, axis());
    Activations(habits_.activations_forward);
  }
  if (gathers_updated) Gather(cutter.Rest(), habits_.updated, Role::kPostStepGather, axis());
  for (int i = 0; i < habits_.head_sums; ++i)
    list_.AllReduce(habits_.tokens, DataType::kFloat32, i == 0 ? ReduceOp::kMax : ReduceOp::kSum,
                    Role::kActivation, Axis::kTensor);
  Scalars(ScalarHabit::Moment::kForwardEnd);
}

void InventedStep::BackwardBlock(size_t block) {
  const auto ahead = static_cast<size_t>(habits_.gathered_ahead);
  for (size_t i = 0; i <= std::min(ahead, block); ++i) GatherParameters(block - i, true);
  if (habits_.recompute) Activations(habits_.activations_forward);
  Activations(habits_.activations_backward);
}

void InventedStep::Backward(bool reduce) {
  list_.SetPhase(Phase::kBackward);
  gathered_.assign(blocks_.size(), !habits_.gather_in_backward);
  const size_t whole = std::min(static_cast<size_t>(habits_.whole_blocks), blocks_.size());
  std::fill(gathered_.end() - static_cast<std::ptrdiff_t>(whole), gathered_.end(), true);
  if (habits_.first_stays_whole) gathered_.front() = true;
  PieceCutter cutter(habits_.gradients);
  Sizes late;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const size_t block = blocks_.size() - 1 - i;
    BackwardBlock(block);
    if (!reduce) continue;
    const bool reversed = habits_.gradients.reversed || !habits_.after_backward;
    Parts parts = blocks_[reversed ? block : i];
    if (reversed) std::reverse(parts.begin(), parts.end());
    const Sizes pieces = cutter.Add(parts);
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
  Parts updated;
  for (const Parts& block : blocks_) {
    for (const Part& part : block)
      if (habits_.stage != ZeroStage::kStage3 || IsKept(part)) updated.push_back(part);
  }
  Sort(updated, habits_.updated_order);
  PieceCutter cutter(habits_.updated);
  Sizes pieces = cutter.Add(updated);
  const Sizes rest = cutter.Rest();
  pieces.insert(pieces.end(), rest.begin(), rest.end());
  Gather(pieces, habits_.updated, Role::kPostStepGather, axis());
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
  list_.SetPhase(Phase::kForward);
  list_.Broadcast(habits_.announced, DataType::kInt64, 0, Role::kOther);
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
