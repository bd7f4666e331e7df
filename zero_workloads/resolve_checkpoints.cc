// SPDX-License-Identifier: Apache-2.0
// Translates a training run into a CheckpointQuestion (zero_r/checkpoint_choice.h). Where this trainer's
// model differs from the ZeRO paper's GPT-2, it uses figures of its own.
#include "zero_workloads/resolve_checkpoints.h"

#include "zero_workloads/device/device.h"
#include "zero_workloads/training_preset.h"

namespace dynamiccl::zero {
namespace {

int64_t MemoryOfRank(const ResidualSettings& residual) {
  return residual.memory_cap > 0 ? residual.memory_cap : DeviceMemoryBytes();
}

// Number of tensors that autograd keeps of one block of this model, in units of the block's input: the input,
// two norms, query, key and value (3), attention's mixed values, the sum after attention, and input and
// output of the activation function (4 each).
constexpr double kInputsKeptByBlock = 16;
// Naive attention copies query, key, value and their result, which the fused kernel does not do. The number
// is in units of the block's input.
constexpr double kCopiesOfNaiveAttention = 4;

double ActivationsOfBlock(const TrainingSettings& settings, const at::TensorOptions& options) {
  if (!UsesNaiveAttention(options.device(), settings.type())) return kInputsKeptByBlock;
  // Naive attention also keeps one probability for each pair of positions in each head.
  const double pairs = static_cast<double>(settings.model.heads * settings.model.sequence) /
                       static_cast<double>(settings.model.hidden);
  return kInputsKeptByBlock + kCopiesOfNaiveAttention + pairs;
}

// Memory that the backward pass of a block needs, in units of the block's input: the gradients of the
// activation function's input and output (4 each), of the block's output and of its input.
constexpr double kInputsOfBackward = 10;

// Bytes that the estimate leaves out. They are logits, their logarithms and the gradients of both, in fp32,
// and the gradients inside a block.
double BytesOfWork(const TrainingSettings& settings, int64_t rows, const at::TensorOptions& options) {
  const auto tokens = static_cast<double>(rows * settings.model.sequence);
  const auto element = static_cast<double>(options.dtype().itemsize());
  return 4.0 * sizeof(float) * tokens * static_cast<double>(settings.model.vocabulary) +
         kInputsOfBackward * element * tokens * static_cast<double>(settings.model.hidden);
}

EstimateSettings EstimateOfGroups(const TrainingSettings& settings, const MeasuredGroups& groups,
                                  const at::TensorOptions& options) {
  EstimateSettings run = EstimateSettingsOf(settings);
  run.ranks = groups.shard->world();
  run.tensor_parallel = groups.tensor == nullptr ? 1 : groups.tensor->world();
  run.batch = settings.batch / groups.data->world();
  run.activations_of_block = ActivationsOfBlock(settings, options);
  return run;
}

}  // namespace

Status CheckMemoryIsKnown(const ResidualSettings& residual) {
  if (residual.activation_checkpoints != "auto" || MemoryOfRank(residual) > 0) return {};
  return WithHint(
      MakeError(ErrorKind::kInvalidArgument,
                "--activation-checkpoints auto: how much host memory a rank may take is not known"),
      "say it: --memory-cap 2G");
}

CheckpointChoice ResolveCheckpoints(const TrainingSettings& settings, const MeasuredGroups& groups,
                                    const at::TensorOptions& options) {
  const int64_t rows = settings.batch / groups.data->world();
  if (const auto asked = settings.residual.checkpoints()) return {*asked, rows, true, {}};
  CheckpointQuestion question{.run = EstimateOfGroups(settings, groups, options), .stage = settings.stage};
  const double memory =
      static_cast<double>(MemoryOfRank(settings.residual)) - BytesOfWork(settings, rows, options);
  question.hardware = MeasureHardware(groups, memory, options);
  return ChooseCheckpoints(question);
}

ActivationStoreSettings StoreSettingsOf(const TrainingSettings& settings, Checkpoints checkpoints,
                                        int64_t rows, ProcessGroup* tensor,
                                        const at::TensorOptions& options) {
  const bool divided = checkpoints >= Checkpoints::kPartitioned;
  return {.divide_over = divided ? tensor : nullptr,
          .on_host = checkpoints == Checkpoints::kPartitionedCpu,
          .prefetch = divided && settings.overlap && settings.residual.activation_prefetch,
          .pool_slots =
              settings.residual.contiguous_pools ? settings.model.layers * settings.units_in_block() : 0,
          .input_elements = rows * settings.model.sequence * settings.model.hidden,
          .options = options};
}

}  // namespace dynamiccl::zero
