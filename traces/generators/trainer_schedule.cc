// SPDX-License-Identifier: Apache-2.0
#include "traces/generators/trainer_schedule.h"

#include <algorithm>
#include <numeric>

namespace dynamiccl {
namespace {

using Parameters = std::vector<size_t>;  // indices into ModelShape::parameters

// Index in the block of the first parameter of its feed-forward part; the block's size if there is no such
// part.
size_t FeedForwardOf(const ModelShape& model, const Parameters& block) {
  const auto begins = [&](size_t index) {
    return model.parameters[index].name.find(".ln_2.") != std::string::npos;
  };
  return static_cast<size_t>(std::ranges::find_if(block, begins) - block.begin());
}

// The root and the pieces that compute one after another: blocks, groups of blocks, or halves of blocks.
std::vector<Parameters> PiecesOf(const GeneratorInput& input) {
  const std::vector<Parameters> blocks = UnitsOf(input.model);
  const auto group = static_cast<size_t>(input.settings.Integer("unit_blocks"));
  std::vector<Parameters> pieces = {blocks.front()};
  for (size_t block = 1; block < blocks.size(); ++block) {
    const Parameters& parameters = blocks[block];
    if (input.settings.Choice("unit") == "half_block") {
      const auto half = parameters.begin() + static_cast<ptrdiff_t>(FeedForwardOf(input.model, parameters));
      pieces.emplace_back(parameters.begin(), half);
      pieces.emplace_back(half, parameters.end());
    } else if ((block - 1) % group == 0) {
      pieces.push_back(parameters);
    } else {
      pieces.back().insert(pieces.back().end(), parameters.begin(), parameters.end());
    }
  }
  return pieces;
}

// Returns the number of elements of each unit. With unit=parameter every parameter is a unit. For each block,
// `blocks` gets the index after its last unit.
std::vector<int64_t> FlatsOf(const GeneratorInput& input, std::vector<size_t>& blocks) {
  const bool by_parameter = input.settings.Choice("unit") == "parameter";
  std::vector<int64_t> flats;
  for (const Parameters& unit : PiecesOf(input)) {
    std::vector<int64_t> parameters;
    for (const size_t index : unit) parameters.push_back(input.model.parameters[index].Elements());
    if (by_parameter) {
      for (const int64_t elements : parameters) flats.push_back(FlatElements({&elements, 1}));
    } else {
      flats.push_back(FlatElements(parameters));
    }
    blocks.push_back(flats.size());
  }
  return flats;
}

}  // namespace

bool HasHalves(const ModelShape& model) {
  const std::vector<Parameters> blocks = UnitsOf(model);
  return std::all_of(blocks.begin() + 1, blocks.end(), [&](const Parameters& block) {
    const size_t half = FeedForwardOf(model, block);
    return half > 0 && half < block.size();
  });
}

TrainerSchedule::TrainerSchedule(const GeneratorInput& input, OperationList& list)
    : list_(list),
      world_(input.world),
      stage_(DynamicclZeroGenerator().Stage(input)),
      type_(input.settings.Type("dtype")),
      reduce_type_(input.settings.Type("reduce_type")),
      micro_steps_(input.settings.Integer("micro_steps")),
      reduces_each_pass_(stage_ >= ZeroStage::kStage2 && input.settings.Choice("accumulation") != "local"),
      hpz_(input.settings.Choice("hybrid") == "hpz"),
      owner_(input.settings.Choice("exchange") == "owner"),
      layer_owner_(input.settings.Choice("exchange") == "layer_owner"),
      all_reduce_(stage_ == ZeroStage::kStage0 || input.settings.Choice("exchange") == "all_reduce"),
      overlap_(input.settings.Flag("overlap")),
      units_ahead_(input.settings.Flag("prefetch")
                       ? static_cast<size_t>(input.settings.Integer("prefetch_units"))
                       : 0),
      axis_(hpz_ ? Axis::kData : input.world.ShardAxis()),
      flats_(FlatsOf(input, blocks_)),
      arena_(flats_, {.ranks = input.world.RanksOn(axis_),
                      .bucket_bytes = input.settings.Integer("bucket_bytes"),
                      .element_bytes = static_cast<int64_t>(ElementBytes(reduce_type_)),
                      .bucket_per_unit = input.settings.Choice("unit") == "parameter"}),
      elements_(static_cast<double>(std::accumulate(flats_.begin(), flats_.end(), int64_t{0}))),
      gathers_(flats_.size()),
      gathered_(flats_.size()),
      one_buffer_(AllInOneBucket()) {}

bool TrainerSchedule::AllInOneBucket() const {
  size_t buckets = 0;
  for (size_t unit = 0; unit < arena_.units(); ++unit)
    for (const BucketPart& part : arena_.BucketsOf(unit)) buckets += part.full > 0 ? 1 : 0;
  return buckets == 1;
}

double TrainerSchedule::ShareOf(size_t block) const {
  double sum = 0;
  for (size_t unit = BeginOf(block); unit < blocks_[block]; ++unit) sum += static_cast<double>(flats_[unit]);
  return sum / elements_;
}

void TrainerSchedule::Compute(TrainerActionKind kind, double share) {
  actions_.push_back({.kind = kind, .share = share});
}

void TrainerSchedule::Issued(Open& open, int64_t after) {
  for (; issued_ < list_.size(); ++issued_) {
    actions_.push_back({.kind = TrainerActionKind::kIssue, .operation = issued_, .after = after});
    open.push_back(issued_);
  }
}

void TrainerSchedule::WaitFor(Open& open) {
  for (const size_t number : open)
    actions_.push_back({.kind = TrainerActionKind::kWait, .operation = number});
  open.clear();
}

void TrainerSchedule::WaitForAll() {
  WaitFor(replica_sums_);
  for (Open& gather : gathers_) WaitFor(gather);
}

void TrainerSchedule::Gather(size_t unit, Role role, Axis axis) {
  const int64_t whole = arena_.whole(unit);
  if (layer_owner_ && axis == axis_) {
    list_.Broadcast(whole, type_, static_cast<int>(unit) % world_.RanksOn(axis), role, axis);
  } else if (!owner_ || axis != axis_) {
    list_.AllGather(whole, type_, role, axis);
  } else {
    const int ranks = world_.RanksOn(axis);
    for (int owner = 0; owner < ranks; ++owner) list_.Broadcast(whole / ranks, type_, owner, role, axis);
  }
  Issued(gathers_[unit]);
}

void TrainerSchedule::GatherForForward(size_t unit) {
  if (stage_ != ZeroStage::kStage3 || unit >= arena_.units() || gathered_[unit]) return;
  gathered_[unit] = true;
  Gather(unit, Role::kParameterGather, axis_);
}

void TrainerSchedule::Forward() {
  list_.SetPhase(Phase::kForward);
  gathered_.assign(gathered_.size(), false);
  for (size_t block = 0; block < blocks_.size(); ++block) {
    for (size_t unit = BeginOf(block); unit < blocks_[block]; ++unit) {
      GatherForForward(unit);
      for (size_t ahead = 1; ahead <= std::min(units_ahead_, arena_.units()); ++ahead)
        GatherForForward(unit + ahead);
      WaitFor(gathers_[unit]);
    }
    if (block > 0) Compute(TrainerActionKind::kForward, ShareOf(block));
  }
  Compute(TrainerActionKind::kForward, ShareOf(0));
}

void TrainerSchedule::GatherForBackward(size_t unit) {
  const bool is_root = unit < blocks_[0];
  if (stage_ != ZeroStage::kStage3 || is_root || gathered_[unit]) return;
  gathered_[unit] = true;
  Gather(unit, Role::kParameterGather, hpz_ ? Axis::kShard : axis_);
}

void TrainerSchedule::Backward(bool reduce) {
  list_.SetPhase(Phase::kBackward);
  gathered_.assign(gathered_.size(), false);
  const bool reduces_at_end = stage_ == ZeroStage::kStage1;
  Compute(TrainerActionKind::kBackward, ShareOf(0));
  for (size_t block = blocks_.size(); block-- > 0;) {
    for (size_t unit = blocks_[block]; unit-- > BeginOf(block);) {
      GatherForBackward(unit);
      for (size_t ahead = 1; ahead <= std::min(units_ahead_, unit); ++ahead) GatherForBackward(unit - ahead);
      WaitFor(gathers_[unit]);
    }
    if (block > 0) Compute(TrainerActionKind::kBackward, ShareOf(block));
    if (reduce && !reduces_at_end) Reduce(block);
  }
  for (size_t block = blocks_.size(); reduce && reduces_at_end && block-- > 0;) Reduce(block);
  SettleAll();
}

void TrainerSchedule::Reduce(size_t block) {
  for (size_t unit = blocks_[block]; unit-- > BeginOf(block);) {
    if (layer_owner_) {
      ReduceToOwner(unit);
      continue;
    }
    for (const BucketPart& part : arena_.BucketsOf(unit)) {
      if (part.opens) WaitFor(buckets_[current_]);
      if (part.full > 0) Send(part.full);
    }
  }
}

void TrainerSchedule::Send(int64_t elements) {
  const int ranks = world_.RanksOn(axis_);
  if (all_reduce_) {
    list_.AllReduce(elements * ranks, reduce_type_, ReduceOp::kSum, Role::kGradientReduce, axis_);
  } else if (!owner_) {
    list_.ReduceScatter(elements * ranks, reduce_type_, ReduceOp::kSum, Role::kGradientReduce, axis_);
  } else {
    for (int owner = 0; owner < ranks; ++owner)
      list_.Reduce(elements, reduce_type_, ReduceOp::kSum, owner, Role::kGradientReduce, axis_);
  }
  Open& bucket = buckets_[current_];
  Issued(bucket);
  // If the sums of several passes are accumulated, the replicas are summed once, after the last pass. After
  // an AllReduce the sums are still in the buffer.
  if (IsReplicated() && !AddsUpShards())
    SumOverReplicas(elements, reduce_type_, all_reduce_ ? bucket : replica_sums_,
                    static_cast<int64_t>(bucket.back()));
  AfterSend();
}

void TrainerSchedule::ReduceToOwner(size_t unit) {
  WaitFor(buckets_[current_]);
  list_.Reduce(arena_.whole(unit), reduce_type_, ReduceOp::kSum,
               static_cast<int>(unit) % world_.RanksOn(axis_), Role::kGradientReduce, axis_);
  Issued(buckets_[current_]);
  AfterSend();
}

void TrainerSchedule::AfterSend() {
  if (!overlap_) {
    WaitFor(buckets_[current_]);
    WaitFor(replica_sums_);
  }
  if (layer_owner_ || !one_buffer_) current_ = (current_ + 1) % kBuffers;
}

void TrainerSchedule::SumOverReplicas(int64_t elements, DataType type, Open& open, int64_t after) {
  list_.AllReduce(elements, type, ReduceOp::kSum, Role::kGradientReduce, Axis::kReplicate);
  Issued(open, after);
}

// Settles both buckets, the older one first.
void TrainerSchedule::SettleAll() {
  WaitFor(buckets_[current_]);
  WaitFor(buckets_[1 - current_]);
  WaitFor(replica_sums_);
}

void TrainerSchedule::Optimizer() {
  list_.SetPhase(Phase::kOptimizer);
  // The loss and the squared norm are sent in one call.
  list_.AllReduce(2, DataType::kFloat32, ReduceOp::kSum, Role::kScalar);
  Open scalars;
  Issued(scalars);
  WaitFor(scalars);
  const int ranks = stage_ == ZeroStage::kStage0 ? 1 : world_.RanksOn(axis_);
  const bool replicates = stage_ == ZeroStage::kStage1 || stage_ == ZeroStage::kStage2;
  if (!replicates || !overlap_) Compute(TrainerActionKind::kUpdate, 1.0 / ranks);
  if (!replicates) return;
  for (size_t unit = 0; unit < arena_.units(); ++unit) {
    if (overlap_) Compute(TrainerActionKind::kUpdate, static_cast<double>(flats_[unit]) / elements_ / ranks);
    Gather(unit, Role::kPostStepGather, axis_);
    if (!overlap_) WaitFor(gathers_[unit]);
  }
}

void TrainerSchedule::Step() {
  for (int64_t micro = 1; micro <= micro_steps_; ++micro) {
    Forward();
    Backward(reduces_each_pass_ || micro == micro_steps_);
  }
  if (IsReplicated() && AddsUpShards()) {
    Open sum;
    SumOverReplicas(arena_.elements(), DataType::kFloat32, sum);
    WaitFor(sum);
  }
  Optimizer();
}

}  // namespace dynamiccl
