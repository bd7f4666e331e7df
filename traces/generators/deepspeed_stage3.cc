// SPDX-License-Identifier: Apache-2.0
// DeepSpeed's ZeRO stage 3, with ZeRO++'s hpZ and MiCS. A micro-step is
// - forward: AllGather where the coordinator gathers, for one module or several at once
// - backward: the same gathers, and ReduceScatter for each gradient bucket
//   (MiCS: over the shard group, then AllReduce over the replicas in the last micro-step)
// After the last micro-step come
// - AllReduce of the overflow flag (float16), AllReduce in float64 of each sub-group's norm
// - AllGather for each parameter that stays gathered, one by one
#include <array>

#include "traces/generators/deepspeed_coordinator.h"
#include "traces/generators/framework_generator.h"

namespace dynamiccl {
namespace {

constexpr std::array kDeepspeedStage3Settings = {
    GeneratorSetting{"dtype", SettingKind::kDataType, "bfloat16", "type of the model"},
    GeneratorSetting{"communication_dtype", SettingKind::kDataType, "",
                     "communication_data_type; empty: dtype"},
    GeneratorSetting{"reduce_bucket_size", SettingKind::kInteger, "500000000", "elements of a bucket"},
    GeneratorSetting{"prefetch_bucket_size", SettingKind::kInteger, "50000000",
                     "stage3_prefetch_bucket_size, elements; 0: no prefetch", 0},
    GeneratorSetting{"max_live_parameters", SettingKind::kInteger, "1000000000",
                     "stage3_max_live_parameters"},
    GeneratorSetting{"max_reuse_distance", SettingKind::kInteger, "1000000000", "stage3_max_reuse_distance",
                     0},
    GeneratorSetting{"param_persistence_threshold", SettingKind::kInteger, "100000",
                     "stage3_param_persistence_threshold: parameters up to this stay gathered", 0},
    GeneratorSetting{"sub_group_size", SettingKind::kInteger, "1000000000",
                     "elements of an optimizer sub-group"},
    GeneratorSetting{"accumulation_steps", SettingKind::kInteger, "1", "gradient_accumulation_steps"},
    GeneratorSetting{
        "hybrid", SettingKind::kChoice, "none",
        "what a shard group is for: hpz gathers in it in the backward, mics partitions over it only", 1,
        "none,hpz,mics"},
};

class Stage3 : public FrameworkGenerator {
 public:
  std::string_view name() const override { return "deepspeed3"; }
  std::string_view sentence() const override { return "DeepSpeed ZeRO stage 3, with hpZ and MiCS"; }
  std::string_view source() const override {
    return "DeepSpeed 0.19.8: deepspeed/runtime/zero/stage3.py, partitioned_param_coordinator.py, mics.py";
  }
  std::span<const GeneratorSetting> settings() const override { return kDeepspeedStage3Settings; }
  ZeroStage Stage(const GeneratorInput&) const override { return ZeroStage::kStage3; }
  Status Check(const GeneratorInput& input) const override;
  void Step(const GeneratorInput& input, int step, OperationList& list) const override;
};

Status Stage3::Check(const GeneratorInput& input) const {
  DYNAMICCL_CHECK_OK(RefuseTensorParallel(input));
  const std::string& hybrid = input.settings.Choice("hybrid");
  if ((hybrid != "none") == input.world.IsHybrid()) return {};
  return WithHint(
      MakeError(ErrorKind::kInvalidArgument, "deepspeed3: hybrid={} with {} of {} ranks in a shard group",
                hybrid, input.world.ShardRanks(), input.world.data),
      "hpz and mics need --shard-group smaller than --data-parallel, and it needs one of them");
}

// One forward and backward of a micro-step. It drives a GatherCoordinator through the modules and writes its
// gathers, and the gradients' buckets, into the list.
class Pass {
 public:
  Pass(const GeneratorInput& input, bool recorded, bool last_micro_step, OperationList& list)
      : input_(input),
        last_micro_step_(last_micro_step),
        list_(list),
        modules_(ModulesOf(input.model)),
        coordinator_(input.model, LimitsOf(input.settings), recorded,
                     [this](const std::vector<size_t>& parameters) { GatherAll(parameters); }) {}

  void Run() {
    list_.SetPhase(Phase::kForward);
    Forward(0);
    list_.SetPhase(Phase::kBackward);
    in_backward_ = true;
    Backward(0);
    Flush();
  }

  // The coordinator's limits from the settings.
  static CoordinatorLimits LimitsOf(const SettingValues& settings) {
    return {settings.Integer("prefetch_bucket_size"), settings.Integer("max_live_parameters"),
            settings.Integer("max_reuse_distance"), settings.Integer("param_persistence_threshold")};
  }

 private:
  bool Mics() const { return input_.settings.Choice("hybrid") == "mics"; }
  int64_t Elements(size_t parameter) const { return input_.model.parameters[parameter].Elements(); }
  void GatherAll(const std::vector<size_t>& parameters);
  void Forward(size_t module);
  void Backward(size_t module);
  void AddGradient(size_t parameter);
  void Flush();

  const GeneratorInput& input_;
  const bool last_micro_step_;
  OperationList& list_;
  const std::vector<ModuleShape> modules_;
  GatherCoordinator coordinator_;
  bool in_backward_ = false;
  int64_t in_bucket_ = 0;      // elements in the open bucket
  int64_t bucket_padded_ = 0;  // the same, with every parameter padded to the ranks
};

// Gathers all these parameters in one message. In the backward pass hpZ gathers from the second copy, inside
// the shard group.
void Pass::GatherAll(const std::vector<size_t>& parameters) {
  const bool secondary = in_backward_ && input_.settings.Choice("hybrid") == "hpz";
  const Axis axis = secondary || Mics() ? Axis::kShard : Axis::kData;
  int64_t elements = 0;
  for (const size_t parameter : parameters)
    elements += RoundUp(Elements(parameter), input_.world.RanksOn(axis));
  list_.AllGather(elements, input_.settings.Type("dtype"), Role::kParameterGather, axis);
}

// A container is used before and after its children, as the framework's hooks run.
void Pass::Forward(size_t module) {
  coordinator_.BeforeUse(modules_[module]);
  for (const size_t child : ChildrenOf(modules_, module)) Forward(child);
  coordinator_.AfterUse(modules_[module]);
}

void Pass::Backward(size_t module) {
  coordinator_.BeforeUse(modules_[module]);
  const std::vector<size_t> children = ChildrenOf(modules_, module);
  for (auto child = children.rbegin(); child != children.rend(); ++child) Backward(*child);
  // In DeepSpeed's own linear function the weight's gradient is ready before the bias's.
  for (const size_t parameter : modules_[module].parameters) AddGradient(parameter);
  coordinator_.AfterUse(modules_[module]);
}

// Adds a gradient; sends the bucket first if it would exceed its size.
void Pass::AddGradient(size_t parameter) {
  const int64_t elements = Elements(parameter);
  if (in_bucket_ + elements > input_.settings.Integer("reduce_bucket_size")) Flush();
  in_bucket_ += elements;
  bucket_padded_ += RoundUp(elements, input_.world.RanksOn(Mics() ? Axis::kShard : Axis::kData));
}

// Sends the open bucket; an empty one sends nothing.
void Pass::Flush() {
  const DataType type = input_.settings.Type("communication_dtype");
  const Axis axis = Mics() ? Axis::kShard : Axis::kData;
  list_.ReduceScatter(bucket_padded_, type, ReduceOp::kSum, Role::kGradientReduce, axis);
  if (Mics() && last_micro_step_) {
    list_.AllReduce(bucket_padded_ / input_.world.ShardRanks(), type, ReduceOp::kSum, Role::kGradientReduce,
                    Axis::kReplicate);
  }
  in_bucket_ = bucket_padded_ = 0;
}

// After the first pass has been recorded, rank 0 broadcasts its record for comparison: the modules, the
// parameters, and the step of each use. Modules without parameters are not all known here, so the size of the
// first broadcast is a lower bound.
void CompareRecords(const ModelShape& model, OperationList& list) {
  const auto modules = static_cast<int64_t>(ModulesOf(model).size());
  const auto parameters = static_cast<int64_t>(model.parameters.size());
  for (const int64_t uses : {2 * modules, 2 * parameters, 2 * parameters})
    list.Broadcast(uses, DataType::kInt64, 0, Role::kOther);
}

// Number of optimizer sub-groups. A sub-group is closed once it holds at least sub_group_size elements of one
// rank's parts.
int64_t SubGroups(const GeneratorInput& input) {
  const int64_t size = input.settings.Integer("sub_group_size");
  int64_t groups = 0, sum = 0;
  for (const ParameterShape& parameter : input.model.parameters) {
    const int64_t ranks =
        input.world.RanksOn(input.settings.Choice("hybrid") == "mics" ? Axis::kShard : Axis::kData);
    if (sum == 0) ++groups;
    sum += RoundUp(parameter.Elements(), ranks) / ranks;
    if (sum >= size) sum = 0;
  }
  return groups;
}

// Adds the calls of the optimizer: AllReduces for the overflow flag and the norm of each sub-group, then the
// gathers of persistent parameters.
void OptimizerStep(const GeneratorInput& input, OperationList& list) {
  const DataType type = input.settings.Type("dtype");
  list.SetPhase(Phase::kOptimizer);
  if (type == DataType::kFloat16) list.AllReduce(1, DataType::kUint8, ReduceOp::kMax, Role::kScalar);
  for (int64_t group = SubGroups(input); group > 0; --group)
    list.AllReduce(1, DataType::kFloat64, ReduceOp::kSum, Role::kScalar);
  const Axis axis = input.settings.Choice("hybrid") == "mics" ? Axis::kShard : Axis::kData;
  for (const ParameterShape& parameter : input.model.parameters) {
    if (!GatherCoordinator::IsPersistent(parameter, Pass::LimitsOf(input.settings))) continue;
    list.AllGather(RoundUp(parameter.Elements(), input.world.RanksOn(axis)), type, Role::kPostStepGather,
                   axis);
  }
}

// The ranks compare their records once, in the second pass of a training, before the framework relies on
// them.
void Stage3::Step(const GeneratorInput& input, int step, OperationList& list) const {
  const int64_t micro_steps = input.settings.Integer("accumulation_steps");
  for (int64_t micro = 0; micro < micro_steps; ++micro) {
    const int64_t pass = step * micro_steps + micro;
    list.SetPhase(Phase::kForward);
    if (pass == 1) CompareRecords(input.model, list);
    Pass(input, pass > 0, micro == micro_steps - 1, list).Run();
  }
  OptimizerStep(input, list);
}

}  // namespace

const FrameworkGenerator& DeepSpeedStage3Generator() {
  static const Stage3 generator;
  return generator;
}

}  // namespace dynamiccl
