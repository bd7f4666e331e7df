// SPDX-License-Identifier: Apache-2.0
// PyTorch's FSDP2: fully_shard on every unit, then on the root. A pass is
// - forward: AllGather for each unit, the root first
// - backward: AllGather for each unit that was freed, one unit ahead; ReduceScatter for each unit, the root
//   last (HSDP: then AllReduce of the shard over replicas)
// After the last pass the norms are summed by AllReduce. Each parameter is padded along its first dimension.
// A shard group smaller than the data-parallel group means hybrid sharding (HSDP).
#include <array>

#include "traces/generators/framework_generator.h"

namespace dynamiccl {
namespace {

constexpr std::array kPytorchFsdp2Settings = {
    GeneratorSetting{"dtype", SettingKind::kDataType, "float32", "type of the sharded parameters"},
    GeneratorSetting{"param_dtype", SettingKind::kDataType, "",
                     "MixedPrecisionPolicy.param_dtype; empty: dtype"},
    GeneratorSetting{"reduce_dtype", SettingKind::kDataType, "",
                     "MixedPrecisionPolicy.reduce_dtype; empty: dtype"},
    GeneratorSetting{"reshard_after_forward", SettingKind::kFlag, "true",
                     "free units after forward, gather again"},
    GeneratorSetting{"reshard_root", SettingKind::kFlag, "false",
                     "the root too (the default leaves it gathered)"},
    GeneratorSetting{"backward_prefetch", SettingKind::kFlag, "true",
                     "gather the next unit before this one's backward"},
    GeneratorSetting{"backward_depth", SettingKind::kInteger, "1",
                     "how many next units backward_prefetch gathers"},
    GeneratorSetting{"forward_prefetch", SettingKind::kInteger, "1",
                     "how many next units the forward pass gathers before it computes one: changes no call"},
    GeneratorSetting{"accumulation_steps", SettingKind::kInteger, "1", "micro-steps of a step"},
    GeneratorSetting{"gradient_sync", SettingKind::kChoice, "last",
                     "reduce in the last micro-step (set_requires_gradient_sync) or in every one", 1,
                     "last,every"},
    GeneratorSetting{"clip", SettingKind::kFlag, "true",
                     "clip_grad_norm_: one AllReduce of one norm a parameter"},
};

class Fsdp2 : public FrameworkGenerator {
 public:
  std::string_view name() const override { return "fsdp2"; }
  std::string_view sentence() const override { return "PyTorch FSDP2 (fully_shard), with HSDP"; }
  std::string_view source() const override { return "PyTorch 2.13: torch/distributed/fsdp/_fully_shard"; }
  std::span<const GeneratorSetting> settings() const override { return kPytorchFsdp2Settings; }
  // Without a second gather the calls are those of the paper's stage 2, except for the place of the gather.
  ZeroStage Stage(const GeneratorInput& input) const override {
    return input.settings.Flag("reshard_after_forward") ? ZeroStage::kStage3 : ZeroStage::kStage2;
  }
  Status Check(const GeneratorInput& input) const override { return RefuseTensorParallel(input); }
  void Step(const GeneratorInput& input, int step, OperationList& list) const override;
};

// One forward and backward of a micro-step.
class Pass {
 public:
  Pass(const GeneratorInput& input, bool reduce, OperationList& list)
      : input_(input), reduce_(reduce), list_(list), units_(UnitsOf(input.model)), gathered_(units_.size()) {}

  void Run() {
    list_.SetPhase(Phase::kForward);
    for (size_t unit = 0; unit < units_.size(); ++unit) {
      Gather(unit);
      gathered_[unit] = !input_.settings.Flag(unit == 0 ? "reshard_root" : "reshard_after_forward");
    }
    list_.SetPhase(Phase::kBackward);
    if (input_.settings.Flag("reshard_root")) Gather(0);
    for (size_t unit = units_.size() - 1; unit > 0; --unit) BackwardUnit(unit);
    Reduce(0);
  }

 private:
  int64_t PaddedElements(size_t unit) const;
  void Gather(size_t unit);
  void BackwardUnit(size_t unit);
  void Reduce(size_t unit);

  const GeneratorInput& input_;
  const bool reduce_;
  OperationList& list_;
  const std::vector<std::vector<size_t>> units_;  // 0 is the root
  std::vector<bool> gathered_;
};

// Elements of a unit, with each parameter's rows padded to a multiple of the shard ranks.
int64_t Pass::PaddedElements(size_t unit) const {
  int64_t sum = 0;
  for (const size_t index : units_[unit]) {
    const ParameterShape& parameter = input_.model.parameters[index];
    const int64_t rows = parameter.dims.front();
    sum += parameter.Elements() / rows * RoundUp(rows, input_.world.ShardRanks());
  }
  return sum;
}

// Gathers a unit unless its parameters are still in memory.
void Pass::Gather(size_t unit) {
  if (gathered_[unit]) return;
  gathered_[unit] = true;
  list_.AllGather(PaddedElements(unit), input_.settings.Type("param_dtype"), Role::kParameterGather,
                  input_.world.ShardAxis());
}

// Gathers this unit, then with prefetching the units that run next, and then sends this unit's gradients.
void Pass::BackwardUnit(size_t unit) {
  Gather(unit);
  const auto depth = static_cast<size_t>(input_.settings.Integer("backward_depth"));
  if (input_.settings.Flag("backward_prefetch"))
    for (size_t next = 1; next <= depth && next < unit; ++next) Gather(unit - next);
  Reduce(unit);
}

// Sends a unit's gradients; a pass that only accumulates sends nothing.
void Pass::Reduce(size_t unit) {
  if (!reduce_) return;
  const DataType type = input_.settings.Type("reduce_dtype");
  // The sum over ranks could overflow in half precision, so PyTorch divides before and after the sum instead
  // of averaging.
  const ReduceOp op = type == DataType::kFloat16 ? ReduceOp::kSum : ReduceOp::kAvg;
  const int64_t elements = PaddedElements(unit);
  list_.ReduceScatter(elements, type, op, Role::kGradientReduce, input_.world.ShardAxis());
  if (!input_.world.IsHybrid()) return;
  list_.AllReduce(elements / input_.world.ShardRanks(), type, op, Role::kGradientReduce, Axis::kReplicate);
}

void Fsdp2::Step(const GeneratorInput& input, int, OperationList& list) const {
  const SettingValues& settings = input.settings;
  const int64_t micro_steps = settings.Integer("accumulation_steps");
  for (int64_t micro = 1; micro <= micro_steps; ++micro)
    Pass(input, micro == micro_steps || settings.Choice("gradient_sync") == "every", list).Run();
  list.SetPhase(Phase::kOptimizer);
  if (!settings.Flag("clip")) return;
  list.AllReduce(static_cast<int64_t>(input.model.parameters.size()), DataType::kFloat32, ReduceOp::kSum,
                 Role::kScalar, input.world.ShardAxis());
}

}  // namespace

const FrameworkGenerator& Fsdp2Generator() {
  static const Fsdp2 generator;
  return generator;
}

}  // namespace dynamiccl
