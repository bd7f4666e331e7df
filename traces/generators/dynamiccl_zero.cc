// SPDX-License-Identifier: Apache-2.0
// The project's own trainer (zero_workloads, docs/zero_trainer.md): stages 0 to 3 with constant buckets,
// hybrid sharding, second copies for backward passes, and the paper's exchange by owners. Settings have the
// names of the trainer's options. A step of stage 3 is
//     forward    AllGather for each unit
//     backward   AllGather for each unit but the root, one unit ahead with prefetch;
//                ReduceScatter for each full bucket; with hybrid sharding AllReduce of it over the replicas
//     optimizer  AllReduce of loss and squared norm
// Stages 1 and 2 gather after the optimizer instead, and stage 0 sums buckets by AllReduce.
#include <array>

#include "traces/generators/framework_generator.h"
#include "traces/generators/zero_arena.h"

namespace dynamiccl {
namespace {

constexpr std::array kDynamicclZeroSettings = {
    SettingRow{"stage", SettingKind::kChoice, "0", "ZeRO stage", 1, "0,1,2,3"},
    SettingRow{"dtype", SettingKind::kDataType, "float32", "type of parameters and activations"},
    SettingRow{"reduce_type", SettingKind::kDataType, "",
               "type of gradients while ranks sum them; empty: dtype"},
    SettingRow{"bucket_bytes", SettingKind::kInteger, "4194304", "of a gradient bucket, over all ranks"},
    SettingRow{"unit", SettingKind::kChoice, "block", "what is gathered and, for parameter, summed at once",
               1, "block,parameter"},
    SettingRow{"exchange", SettingKind::kChoice, "collective",
               "owner: one Reduce and one Broadcast for each rank's part", 1, "collective,owner"},
    SettingRow{"micro_steps", SettingKind::kInteger, "1", "passes of a step"},
    SettingRow{"accumulation", SettingKind::kChoice, "default",
               "where micro-steps are added up; default: local in stages 0 and 1, sharded in 2 and 3", 1,
               "default,local,sharded"},
    SettingRow{"overlap", SettingKind::kFlag, "true",
               "with a shard group: a bucket's sum over replicas waits until its buffer is needed again"},
    SettingRow{"prefetch", SettingKind::kFlag, "true", "stage 3: gather the next unit early"},
    SettingRow{"hybrid", SettingKind::kChoice, "shard",
               "what a shard group is for: shard divides over it only, hpz gathers in it in the backward", 1,
               "shard,hpz"},
};

class DynamicclZero : public FrameworkGenerator {
 public:
  std::string_view name() const override { return "dynamiccl-zero"; }
  std::string_view sentence() const override {
    return "this project's ZeRO trainer, with hybrid sharding and hpZ";
  }
  std::string_view source() const override { return "zero_workloads of this release"; }
  std::span<const SettingRow> settings() const override { return kDynamicclZeroSettings; }
  ZeroStage Stage(const GeneratorInput& input) const override {
    return static_cast<ZeroStage>(input.settings.Choice("stage").front() - '0');
  }
  Status Check(const GeneratorInput& input) const override;
  void Step(const GeneratorInput& input, int step, OperationList& list) const override;
};

// Refuses what the trainer refuses.
Status DynamicclZero::Check(const GeneratorInput& input) const {
  DYNAMICCL_CHECK_OK(RefuseTensorParallel(input));
  const ZeroStage stage = Stage(input);
  const SettingValues& settings = input.settings;
  const bool hpz = settings.Choice("hybrid") == "hpz";
  const auto refuse = [](const char* what, const char* hint) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "dynamiccl-zero: {}", what), hint);
  };
  if (stage == ZeroStage::kStage0 && input.world.IsHybrid())
    return refuse("stage 0 divides nothing, so that it has no shard groups", "take stage=1, 2 or 3");
  if (stage == ZeroStage::kStage0 && settings.Choice("exchange") == "owner")
    return refuse("exchange=owner: in stage 0 every rank owns everything", "take stage=1, 2 or 3");
  if (stage < ZeroStage::kStage2 && settings.Choice("accumulation") == "sharded")
    return refuse("accumulation=sharded is for stages 2 and 3", "leave it out");
  if (hpz && (stage != ZeroStage::kStage3 || !input.world.IsHybrid()))
    return refuse("hybrid=hpz is for stage 3 and a --shard-group smaller than --data-parallel",
                  "set stage=3 and --shard-group");
  return {};
}

// One training step of the trainer, written into the list by Run. The settings have been checked before.
class TrainerStep {
 public:
  TrainerStep(const GeneratorInput& input, ZeroStage stage, OperationList& list);
  void Run();

 private:
  void Forward();
  void Backward(bool reduce);
  void GatherForBackward(size_t unit);
  void Gather(size_t unit, Role role, Axis axis);
  void Reduce(size_t unit);
  void Send(int64_t elements);
  void SumOldestOverReplicas();
  void Optimizer();

  bool IsRoot(size_t unit) const { return unit < blocks_[0]; }
  bool IsReplicated() const { return axis_ == Axis::kShard; }
  bool AddsUpShards() const { return micro_steps_ > 1 && reduces_each_pass_; }

  const GeneratorInput& input_;
  const ZeroStage stage_;
  OperationList& list_;
  const DataType type_, reduce_type_;
  const int64_t micro_steps_;
  bool reduces_each_pass_;
  bool hpz_;
  // The axis over which the model is divided.
  Axis axis_;
  // For each block, the root first: one past its last unit.
  std::vector<size_t> blocks_;
  std::vector<int64_t> flats_;  // by unit: elements with padding
  std::vector<bool> gathered_;  // by unit, in this backward pass
  // Buckets that were sent and are not summed over the replicas yet.
  std::vector<int64_t> unsummed_;
  ZeroArena arena_;
};

// Elements of each unit. With unit=parameter each parameter is a unit of its own.
std::vector<int64_t> FlatsOf(const GeneratorInput& input, std::vector<size_t>& blocks) {
  const bool by_parameter = input.settings.Choice("unit") == "parameter";
  std::vector<int64_t> flats;
  for (const std::vector<size_t>& unit : UnitsOf(input.model)) {
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

TrainerStep::TrainerStep(const GeneratorInput& input, ZeroStage stage, OperationList& list)
    : input_(input),
      stage_(stage),
      list_(list),
      type_(input.settings.Type("dtype")),
      reduce_type_(input.settings.Type("reduce_type")),
      micro_steps_(input.settings.Integer("micro_steps")),
      reduces_each_pass_(stage >= ZeroStage::kStage2 && input.settings.Choice("accumulation") != "local"),
      hpz_(input.settings.Choice("hybrid") == "hpz"),
      axis_(hpz_ ? Axis::kData : input.world.ShardAxis()),
      flats_(FlatsOf(input, blocks_)),
      gathered_(flats_.size()),
      arena_(flats_, {.ranks = input.world.RanksOn(axis_),
                      .bucket_bytes = input.settings.Integer("bucket_bytes"),
                      .element_bytes = static_cast<int64_t>(ElementBytes(reduce_type_)),
                      .bucket_per_unit = input.settings.Choice("unit") == "parameter"}) {}

// One AllGather, or one Broadcast from each owner.
void TrainerStep::Gather(size_t unit, Role role, Axis axis) {
  const int64_t whole = arena_.whole(unit);
  if (input_.settings.Choice("exchange") == "collective" || axis != axis_)
    return list_.AllGather(whole, type_, role, axis);
  const int ranks = input_.world.RanksOn(axis);
  for (int owner = 0; owner < ranks; ++owner) list_.Broadcast(whole / ranks, type_, owner, role, axis);
}

// Two buffers alternate, so a bucket's sum over the replicas must end when a third bucket opens.
void TrainerStep::Reduce(size_t unit) {
  for (const BucketPart& bucket : arena_.BucketsOf(unit)) {
    if (bucket.opens && unsummed_.size() == 2) SumOldestOverReplicas();
    if (bucket.full > 0) Send(bucket.full);
  }
}

// Sends a full bucket; `elements` are those of one rank.
void TrainerStep::Send(int64_t elements) {
  const int ranks = input_.world.RanksOn(axis_);
  if (stage_ == ZeroStage::kStage0) {
    list_.AllReduce(elements * ranks, reduce_type_, ReduceOp::kSum, Role::kGradientReduce, axis_);
  } else if (input_.settings.Choice("exchange") == "collective") {
    list_.ReduceScatter(elements * ranks, reduce_type_, ReduceOp::kSum, Role::kGradientReduce, axis_);
  } else {
    for (int owner = 0; owner < ranks; ++owner)
      list_.Reduce(elements, reduce_type_, ReduceOp::kSum, owner, Role::kGradientReduce, axis_);
  }
  // Sums of several passes wait for the last one.
  if (!IsReplicated() || AddsUpShards()) return;
  unsummed_.push_back(elements);
  if (!input_.settings.Flag("overlap")) SumOldestOverReplicas();
}

void TrainerStep::SumOldestOverReplicas() {
  list_.AllReduce(unsummed_.front(), reduce_type_, ReduceOp::kSum, Role::kGradientReduce, Axis::kReplicate);
  unsummed_.erase(unsummed_.begin());
}

// Only stage 3 gathers in the forward.
void TrainerStep::Forward() {
  list_.SetPhase(Phase::kForward);
  if (stage_ != ZeroStage::kStage3) return;
  for (size_t unit = 0; unit < arena_.units(); ++unit) Gather(unit, Role::kParameterGather, axis_);
}

// Gathers a unit once a pass; the root stays gathered from the forward.
void TrainerStep::GatherForBackward(size_t unit) {
  if (stage_ != ZeroStage::kStage3 || IsRoot(unit) || gathered_[unit]) return;
  gathered_[unit] = true;
  Gather(unit, Role::kParameterGather, hpz_ ? Axis::kShard : axis_);
}

// Blocks come in reverse. A block's gathers come before its reductions.
void TrainerStep::Backward(bool reduce) {
  list_.SetPhase(Phase::kBackward);
  gathered_.assign(gathered_.size(), false);
  for (size_t block = blocks_.size(); block-- > 0;) {
    const size_t begin = block == 0 ? 0 : blocks_[block - 1];
    for (size_t unit = blocks_[block]; unit-- > begin;) {
      GatherForBackward(unit);
      if (input_.settings.Flag("prefetch") && unit > 0) GatherForBackward(unit - 1);
    }
    for (size_t unit = blocks_[block]; reduce && unit-- > begin;) Reduce(unit);
  }
  while (!unsummed_.empty()) SumOldestOverReplicas();
}

void TrainerStep::Optimizer() {
  list_.SetPhase(Phase::kOptimizer);
  // Loss and squared norm travel together.
  list_.AllReduce(2, DataType::kFloat32, ReduceOp::kSum, Role::kScalar);
  if (stage_ != ZeroStage::kStage1 && stage_ != ZeroStage::kStage2) return;
  for (size_t unit = 0; unit < arena_.units(); ++unit) Gather(unit, Role::kPostStepGather, axis_);
}

void TrainerStep::Run() {
  for (int64_t micro = 1; micro <= micro_steps_; ++micro) {
    Forward();
    Backward(reduces_each_pass_ || micro == micro_steps_);
  }
  if (IsReplicated() && AddsUpShards())
    list_.AllReduce(arena_.elements(), DataType::kFloat32, ReduceOp::kSum, Role::kGradientReduce,
                    Axis::kReplicate);
  Optimizer();
}

void DynamicclZero::Step(const GeneratorInput& input, int, OperationList& list) const {
  TrainerStep(input, Stage(input), list).Run();
}

}  // namespace

const FrameworkGenerator& DynamicclZeroGenerator() {
  static const DynamicclZero generator;
  return generator;
}

}  // namespace dynamiccl
