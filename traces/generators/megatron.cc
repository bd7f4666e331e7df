// SPDX-License-Identifier: Apache-2.0
// Megatron-LM: data parallelism with the distributed optimizer (ZeRO-1 with true ReduceScatter) or without
// it, under tensor and sequence parallelism. Gradients lie in one buffer in the reverse order of
// registration. A step is
// - in each micro-step: the activations' collectives, forward and backward (megatron_activations.h), and
//   AllReduce of the loss
// - in the last micro-step: ReduceScatter, or AllReduce, of each bucket. All come at the end of the backward
//   pass; with overlap_grad_reduce each comes once the bucket is full
// - AllReduce of the overflow flag (float16) and of the norm
// - AllGather for each bucket; with overlap_param_gather in the forward pass of the next step instead
#include <algorithm>
#include <array>
#include <numeric>

#include "traces/generators/framework_generator.h"
#include "traces/generators/megatron_activations.h"

namespace dynamiccl {
namespace {

constexpr std::array kMegatronSettings = {
    GeneratorSetting{"dtype", SettingKind::kDataType, "bfloat16", "type of parameters and activations"},
    GeneratorSetting{"gradient_dtype", SettingKind::kDataType, "float32",
                     "type of the gradient buffer (--accumulate-allreduce-grads-in-fp32)"},
    GeneratorSetting{"use_distributed_optimizer", SettingKind::kFlag, "true", "false: AllReduce, no gather"},
    GeneratorSetting{"overlap_grad_reduce", SettingKind::kFlag, "false",
                     "buckets, each sent once it is full"},
    GeneratorSetting{"overlap_param_gather", SettingKind::kFlag, "false",
                     "gathers move into the next forward"},
    GeneratorSetting{"bucket_size", SettingKind::kInteger, "0",
                     "elements, with overlap_grad_reduce; 0: the larger of 40 million and a million a rank",
                     0},
    GeneratorSetting{"average_in_collective", SettingKind::kFlag, "false",
                     "AVG instead of a sum of scaled gradients"},
    GeneratorSetting{"sequence_parallel", SettingKind::kFlag, "false",
                     "activations outside the layers are split too"},
    GeneratorSetting{"micro_batch", SettingKind::kInteger, "1", "sequences of a micro-step"},
    GeneratorSetting{"accumulation_steps", SettingKind::kInteger, "1", "micro-steps of a step"},
    GeneratorSetting{"recompute", SettingKind::kChoice, "none", "activation checkpoints of whole layers", 1,
                     "none,full"},
    GeneratorSetting{"distribute_saved_activations", SettingKind::kFlag, "false",
                     "checkpoints are split over the tensor-parallel ranks (the paper's P_a)"},
    GeneratorSetting{"clip", SettingKind::kFlag, "true", "the gradients' norm"},
};

// Default number of elements of a bucket. DistributedDataParallel in
// megatron/core/distributed/distributed_data_parallel.py takes the larger of two numbers: 40 million, and 1
// million for each rank.
constexpr int64_t kBucketElements = 40'000'000;
constexpr int64_t kBucketElementsOfARank = 1'000'000;
// Elements, from megatron/core/distributed/param_and_grad_buffer.py: a parameter starts at a multiple of 64,
// and a bucket's end divides by the ranks and by 128.
constexpr int64_t kParameterAlignment = 64;
constexpr int64_t kBucketAlignment = 128;

class Megatron : public FrameworkGenerator {
 public:
  std::string_view name() const override { return "megatron"; }
  std::string_view sentence() const override {
    return "Megatron-LM: distributed optimizer, tensor and sequence parallelism";
  }
  std::string_view source() const override {
    return "Megatron-LM d98e8a6: megatron/core/distributed, optimizer, tensor_parallel";
  }
  std::span<const GeneratorSetting> settings() const override { return kMegatronSettings; }
  ZeroStage Stage(const GeneratorInput& input) const override {
    return input.settings.Flag("use_distributed_optimizer") ? ZeroStage::kStage1 : ZeroStage::kStage0;
  }
  Status Check(const GeneratorInput& input) const override;
  void Step(const GeneratorInput& input, int step, OperationList& list) const override;
};

Status Refuse(const char* what, const char* hint) {
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "megatron: {}", what), hint);
}

// Settings that Megatron-LM would refuse, or that would have no effect.
Status CheckSettings(const SettingValues& settings, bool tensor_parallel) {
  if (settings.Flag("sequence_parallel") && !tensor_parallel)
    return Refuse("sequence_parallel=true with one tensor-parallel rank", "raise --tensor-parallel");
  if (settings.Flag("overlap_param_gather") &&
      !(settings.Flag("use_distributed_optimizer") && settings.Flag("overlap_grad_reduce"))) {
    return Refuse("overlap_param_gather=true without the distributed optimizer and overlap_grad_reduce",
                  "set both to true");
  }
  if (settings.Integer("bucket_size") > 0 && !settings.Flag("overlap_grad_reduce"))
    return Refuse("bucket_size without overlap_grad_reduce has no effect", "set overlap_grad_reduce=true");
  if (settings.Flag("distribute_saved_activations") &&
      (!tensor_parallel || settings.Flag("sequence_parallel") || settings.Choice("recompute") != "full")) {
    return Refuse(
        "distribute_saved_activations=true needs tensor parallelism and recompute=full, "
        "without sequence_parallel",
        "set them, or leave it out");
  }
  return {};
}

// The dimension that tensor parallelism splits; 0 for a parameter that is not split.
int64_t Dividend(const ParameterShape& parameter) {
  if (parameter.split == TensorSplit::kNone) return 0;
  return parameter.dims[parameter.split == TensorSplit::kRows ? 0 : 1];
}

Status Megatron::Check(const GeneratorInput& input) const {
  DYNAMICCL_CHECK_OK(RefuseHybridSharding(input));
  const int tensor = input.world.tensor;
  DYNAMICCL_CHECK_OK(CheckSettings(input.settings, tensor > 1));
  if (tensor == 1) return {};
  if (!input.model.transformer)
    return Refuse("tensor parallelism needs a transformer", "take --model gpt, bert or llama");
  for (const ParameterShape& parameter : input.model.parameters) {
    if (Dividend(parameter) % tensor == 0) continue;
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "megatron: {} of {} does not divide by {} ranks",
                              parameter.name, Dividend(parameter), tensor),
                    "take sizes that do: Megatron-LM pads the vocabulary to a multiple of 128 ranks");
  }
  const auto& [layers, hidden, vocabulary, sequence, tied] = *input.model.transformer;
  if (input.settings.Integer("micro_batch") * sequence * hidden % tensor != 0)
    return Refuse("activations do not divide by the tensor-parallel ranks",
                  "take another sequence or hidden");
  return {};
}

// A bucket of the gradient buffer. Parameters are counted from the last registered one.
struct BufferBucket {
  int64_t elements = 0;  // with padding
  size_t end = 0;        // number of parameters before its end
};

// Cuts the gradient buffer into buckets. Without overlap_grad_reduce there is one.
std::vector<BufferBucket> BucketsOf(const GeneratorInput& input) {
  const SettingValues& settings = input.settings;
  const int64_t ranks = input.world.data;
  const bool padded = settings.Flag("use_distributed_optimizer");
  const int64_t alignment = padded ? kParameterAlignment : 1;
  const int64_t end_alignment = padded ? std::lcm(ranks, kBucketAlignment) : 1;
  int64_t cap = INT64_MAX;
  if (settings.Flag("overlap_grad_reduce")) {
    cap = settings.Integer("bucket_size");
    if (cap == 0) cap = std::max(kBucketElements, kBucketElementsOfARank * ranks);
  }
  std::vector<BufferBucket> buckets;
  int64_t begin = 0, at = 0;
  const auto& parameters = input.model.parameters;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const ParameterShape& parameter = parameters[parameters.size() - 1 - i];
    const int64_t parts = parameter.split == TensorSplit::kNone ? 1 : input.world.tensor;
    at = RoundUp(at, alignment) + parameter.Elements() / parts;
    if (at - begin < cap && i + 1 < parameters.size()) continue;
    at = RoundUp(at, end_alignment);
    buckets.push_back({at - begin, i + 1});
    begin = at;
  }
  return buckets;
}

// Writes the operations of one step, and remembers how far the step has come in the gradient buffer.
class StepWriter {
 public:
  StepWriter(const GeneratorInput& input, OperationList& list)
      : input_(input),
        list_(list),
        activations_(input, list),
        buckets_(BucketsOf(input)),
        units_(UnitsOf(input.model)) {}

  void Run(int step);

 private:
  void Forward();
  void Backward(bool reduce);
  void ReduceBucketsUpTo(size_t parameters);
  void GatherNext();
  // Call it before the forward pass uses the first `parameters` parameters in the order of registration.
  void AwaitGathersOf(size_t parameters);
  void OptimizerStep();
  bool Overlapped() const { return input_.settings.Flag("overlap_param_gather"); }

  const GeneratorInput& input_;
  OperationList& list_;
  MegatronActivations activations_;
  const std::vector<BufferBucket> buckets_;
  const std::vector<std::vector<size_t>> units_;
  size_t reduced_ = 0;  // number of buckets that this backward pass has sent
  // Number of buckets whose gather was not issued yet, and of those whose gather was not waited for. Buckets
  // are gathered from the end of the buffer, which is the order of the forward pass.
  size_t to_gather_ = 0;
  size_t to_await_ = 0;
};

// Issues the gather of the next bucket in the order of the forward pass.
void StepWriter::GatherNext() {
  if (to_gather_ == 0) return;
  --to_gather_;
  list_.AllGather(buckets_[to_gather_].elements, input_.settings.Type("dtype"), Role::kPostStepGather);
}

// Waits for a bucket's gather when its first parameter is used, and then issues the gather of the next
// bucket: one gather is always ahead.
void StepWriter::AwaitGathersOf(size_t parameters) {
  const size_t all = input_.model.parameters.size();
  while (to_await_ > 0 && all - buckets_[to_await_ - 1].end < parameters) {
    --to_await_;
    GatherNext();
  }
}

// Runs the forward pass. It waits for the gathers of a unit's parameters right before it uses the unit.
void StepWriter::Forward() {
  activations_.Batch();
  activations_.EmbeddingForward();
  size_t used = units_.size() > 1 && !units_[1].empty() ? units_[1].front() : input_.model.parameters.size();
  AwaitGathersOf(used);
  for (size_t unit = 1; unit < units_.size(); ++unit) {
    used = units_[unit].back() + 1;
    AwaitGathersOf(used);
    activations_.LayerForward();
  }
  AwaitGathersOf(input_.model.parameters.size());
  activations_.HeadForward();
  // The loss is summed for the log.
  list_.AllReduce(1, DataType::kFloat32, ReduceOp::kSum, Role::kScalar);
}

// Sends the buckets that are full once the last `parameters` parameters, in the order of registration, have
// their gradients.
void StepWriter::ReduceBucketsUpTo(size_t parameters) {
  const bool scatter = input_.settings.Flag("use_distributed_optimizer");
  const DataType type = input_.settings.Type("gradient_dtype");
  const ReduceOp op = input_.settings.Flag("average_in_collective") ? ReduceOp::kAvg : ReduceOp::kSum;
  for (; reduced_ < buckets_.size() && buckets_[reduced_].end <= parameters; ++reduced_) {
    if (scatter)
      list_.ReduceScatter(buckets_[reduced_].elements, type, op, Role::kGradientReduce);
    else
      list_.AllReduce(buckets_[reduced_].elements, type, op, Role::kGradientReduce);
  }
}

// With overlap a bucket is sent as soon as its last gradient is ready.
void StepWriter::Backward(bool reduce) {
  const size_t parameters = input_.model.parameters.size();
  const bool early = reduce && input_.settings.Flag("overlap_grad_reduce");
  activations_.HeadBackward();
  for (size_t unit = units_.size() - 1; unit > 0; --unit) {
    if (early) ReduceBucketsUpTo(parameters - units_[unit].back() - 1);  // the head's, or the next unit's
    activations_.LayerBackward();
    if (early) ReduceBucketsUpTo(parameters - units_[unit].front());
  }
  activations_.EmbeddingBackward();
  if (reduce) ReduceBucketsUpTo(parameters);
}

// With the distributed optimizer the norm and the overflow flag are summed over all ranks, else over the
// tensor-parallel ranks.
void StepWriter::OptimizerStep() {
  const bool distributed = input_.settings.Flag("use_distributed_optimizer");
  const Axis axis = distributed ? Axis::kWorld : Axis::kTensor;
  list_.SetPhase(Phase::kOptimizer);
  activations_.SharedGradients();
  if (distributed || input_.world.tensor > 1) {
    if (input_.settings.Type("dtype") == DataType::kFloat16)
      list_.AllReduce(1, DataType::kFloat32, ReduceOp::kMax, Role::kScalar, axis);
    if (input_.settings.Flag("clip"))
      list_.AllReduce(1, DataType::kFloat32, ReduceOp::kSum, Role::kScalar, axis);
  }
  if (!distributed || Overlapped()) return;
  to_gather_ = buckets_.size();
  while (to_gather_ > 0) GatherNext();
}

void StepWriter::Run(int step) {
  const int64_t micro_steps = input_.settings.Integer("accumulation_steps");
  for (int64_t micro = 1; micro <= micro_steps; ++micro) {
    list_.SetPhase(Phase::kForward);
    // In step 0 no parameter has been updated yet, so no gather is needed.
    if (micro == 1 && step > 0 && Overlapped()) {
      to_gather_ = to_await_ = buckets_.size();
      GatherNext();
    }
    Forward();
    list_.SetPhase(Phase::kBackward);
    Backward(micro == micro_steps);
  }
  OptimizerStep();
}

void Megatron::Step(const GeneratorInput& input, int step, OperationList& list) const {
  StepWriter(input, list).Run(step);
}

}  // namespace

const FrameworkGenerator& MegatronGenerator() {
  static const Megatron generator;
  return generator;
}

}  // namespace dynamiccl
