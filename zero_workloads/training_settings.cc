// SPDX-License-Identifier: Apache-2.0
// Ranges and names are checked by tables; checks that depend on several options have a function of their own.
#include "zero_workloads/training_settings.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "zero_workloads/memory/taken_memory.h"
#include "zero_workloads/offload/optimizer_offload.h"
#include "zero_workloads/offload/state_file.h"

namespace dynamiccl::zero {
namespace {

// The permitted values of a numeric option, bounds included.
struct Range {
  const char* option;
  double value;
  double low;
  double high;
};

// An option whose values are words, and the permitted words.
struct WordOption {
  const char* option;
  const std::string& value;
  std::vector<std::string_view> known;
};

// True if the text is a positive number with nothing after it.
bool IsScale(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0' && std::isfinite(value) && value > 0;
}

Status ValidateExchange(const TrainingSettings& settings) {
  const bool by_owners = settings.exchange == "owner" || settings.exchange == "layer_owner";
  if (by_owners && settings.stage == 0) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "--exchange {}: in stage 0 every rank owns everything; it is for stages 1 to 3",
                     settings.exchange);
  }
  if (settings.exchange == "layer_owner" && (settings.live || settings.shard_group > 0)) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument,
                              "--exchange layer_owner sums each unit in one call to its owner, without {}",
                              settings.live ? "the buckets that --live changes" : "--shard-group"),
                    "--exchange owner has both");
  }
  if (settings.exchange == "all_reduce" && (settings.stage == 0 || settings.stage == 3)) {
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument,
                  "--exchange all_reduce is for stages 1 and 2; stage {} always sums gradients by {}",
                  settings.stage, settings.stage == 0 ? "AllReduce" : "ReduceScatter"),
        "leave it out, or give --stage 1 or 2");
  }
  return {};
}

Status ValidateUnits(const TrainingSettings& settings) {
  if (settings.unit_blocks > 1 && settings.unit != "block") {
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "--unit-blocks {} with --unit {}",
                              settings.unit_blocks, settings.unit),
                    "only whole blocks are grouped: leave out one of them");
  }
  if (settings.unit_blocks > settings.model.layers) {
    return MakeError(ErrorKind::kInvalidArgument, "--unit-blocks {}: the model has {} block(s)",
                     settings.unit_blocks, settings.model.layers);
  }
  if (settings.unit == "half_block" && settings.residual.activation_checkpoints == "auto") {
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument,
                  "--unit half_block with --activation-checkpoints auto: its estimate is of whole blocks"),
        "choose the checkpoints, or --unit block");
  }
  return {};
}

Status ValidateMasterWeights(const TrainingSettings& settings) {
  if (settings.master_weights) return {};
  if (settings.dtype == "fp32") {
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument,
                  "--no-master-weights with --dtype fp32: parameters in fp32 need no master weights"),
        "give --dtype bf16 or fp16");
  }
  if (settings.offload_optimizer.starts_with("nvme")) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "--no-master-weights with --offload-optimizer nvme: the weights in files are fp32");
  }
  return {};
}

Status ValidateWords(const TrainingSettings& settings) {
  const WordOption options[] = {
      {"--unit", settings.unit, {"block", "half_block", "parameter"}},
      {"--bucket-memory", settings.bucket_memory, {"ordinary", "registered", "window"}},
      {"--exchange", settings.exchange, {"collective", "owner", "layer_owner", "all_reduce"}},
      {"--dtype", settings.dtype, {"fp32", "bf16", "fp16"}},
      {"--reduce-type", settings.reduce_type, {"model", "fp32"}},
      {"--accumulation", settings.accumulation, {"default", "local", "sharded"}},
      {"--accumulation-type", settings.accumulation_type, {"fp32", "model"}},
  };
  for (const auto& [option, value, known] : options) {
    if (std::find(known.begin(), known.end(), value) != known.end()) continue;
    return MakeError(ErrorKind::kInvalidArgument, "{} {}: one of {}", option, value, fmt::join(known, ", "));
  }
  const std::string& scale = settings.loss_scale;
  if (scale != "default" && scale != "dynamic" && !IsScale(scale)) {
    return MakeError(ErrorKind::kInvalidArgument, "--loss-scale {}: dynamic or a positive number", scale);
  }
  DYNAMICCL_CHECK_OK(ValidateMasterWeights(settings));
  DYNAMICCL_CHECK_OK(ValidateExchange(settings));
  DYNAMICCL_CHECK_OK(ValidateUnits(settings));
  if (settings.accumulation == "sharded" && settings.stage < 2) {
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument,
                  "--accumulation sharded: stage {} sums gradients over ranks once a step", settings.stage),
        "stages 2 and 3 can add up shards");
  }
  return {};
}

Status ValidateSharding(const TrainingSettings& settings) {
  if (settings.shard_group > 0 && settings.stage == 0) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "--shard-group {}: stage 0 divides nothing",
                              settings.shard_group),
                    "give --stage 1, 2 or 3");
  }
  if (settings.secondary_group > 0 && settings.stage != 3) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument,
                              "--secondary-group {}: stage {} gathers no parameters for backward passes",
                              settings.secondary_group, settings.stage),
                    "it is for --stage 3");
  }
  if (!settings.prefetch && settings.prefetch_units > 1) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "--prefetch-units {} contradicts --no-prefetch",
                              settings.prefetch_units),
                    "leave out one of them");
  }
  if (settings.prefetch_units > 1 && settings.stage != 3) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument,
                              "--prefetch-units {}: stage {} gathers no parameters before their use",
                              settings.prefetch_units, settings.stage),
                    "it is for --stage 3");
  }
  return {};
}

Status ValidateMemory(const TrainingSettings& settings) {
  const auto offload = OptimizerOffload::Parse(settings.offload_optimizer);
  if (!offload) return tl::unexpected(offload.error());
  const auto taken = TakenMemory::Parse(settings.memory_taken);
  if (!taken) return tl::unexpected(taken.error());
  if (settings.batch == 0 && !settings.checkpoint.directory.empty()) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument,
                              "--batch auto: which sample is next depends on the memory of all steps before, "
                              "and checkpoints do not keep it"),
                    "give --batch a number, or leave the checkpoints out");
  }
  const std::string& kept = settings.residual.activation_checkpoints;
  if (settings.batch == 0 && settings.residual.contiguous_pools && kept != "none" && kept != "auto") {
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument,
                  "--batch auto with --contiguous-pools: the pool has a slot for each block's input, whose "
                  "size depends on the batch"),
        "give --batch a number, or leave the pools out");
  }
  if (settings.batch == 0 && kept == "auto") {
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument,
                  "--batch auto and --activation-checkpoints auto each choose for the other's choice"),
        "give one of them a value");
  }
  if (settings.residual.memory_cap > 0) {
    if (settings.bucket_memory == "ordinary") return {};
    return WithHint(MakeError(ErrorKind::kInvalidArgument,
                              "--bucket-memory {} with --memory-cap: NCCL allocates this memory, and the cap "
                              "does not limit it",
                              settings.bucket_memory),
                    "leave out one of them");
  }
  if (settings.batch > 0 && settings.memory_taken.empty()) return {};
  const char* const option = settings.batch > 0 ? "--memory-taken" : "--batch auto";
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "{} needs to know how much memory there is", option),
                  "--memory-cap 64M says what the tensors of a rank may take");
}

int64_t RoundUpTo(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Checks that the tensor-parallel degree divides the sizes that tensor parallelism splits.
Status ValidateTensorDegree(const TrainingSettings& settings) {
  // A size that the degree must divide, with its name and a hint for messages.
  struct Divided {
    std::string what;
    int64_t count;
    const char* hint;
  };
  const int degree = settings.tensor_parallel;
  const GptShape& model = settings.model;
  std::vector<Divided> divided = {
      {fmt::format("--heads {}", model.heads), model.heads, "each rank computes as many attention heads"},
      {fmt::format("--hidden {}", model.hidden), model.hidden, "each rank has as many columns"},
      {fmt::format("the vocabulary of {}", model.vocabulary), model.vocabulary, "take a power of two"}};
  if (settings.sequence_parallel) {
    if (degree == 1) {
      return WithHint(
          MakeError(ErrorKind::kInvalidArgument, "--sequence-parallel without tensor parallelism"),
          "add --tensor-parallel 2 or more");
    }
    const std::string& checkpoints = settings.residual.activation_checkpoints;
    if (checkpoints == "partitioned" || checkpoints == "auto") {
      return WithHint(
          MakeError(ErrorKind::kInvalidArgument,
                    "--activation-checkpoints {} with --sequence-parallel: a rank has its slice of "
                    "a checkpoint only, there is nothing left to divide",
                    checkpoints),
          "full keeps the slices, partitioned_cpu moves them to the host");
    }
    divided.push_back({fmt::format("--sequence {}", model.sequence), model.sequence,
                       "--sequence-parallel gives each rank as many positions"});
  }
  for (const auto& [what, count, hint] : divided) {
    if (count % degree == 0) continue;
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "--tensor-parallel {} does not divide {}", degree, what),
        hint);
  }
  return {};
}

// With --exchange layer_owner, checks that there are at least as many units as data ranks.
Status ValidateOwners(const TrainingSettings& settings, int data_ranks) {
  const int64_t units = 1 + (settings.model.layers + settings.unit_blocks - 1) / settings.unit_blocks *
                                settings.units_in_block();
  if (settings.exchange != "layer_owner" || settings.unit == "parameter" || data_ranks <= units) return {};
  return WithHint(
      MakeError(ErrorKind::kInvalidArgument,
                "--exchange layer_owner: {} data ranks, of which each owns a unit, and {} unit(s)",
                data_ranks, units),
      "fewer ranks, more --layers, or smaller units (--unit half_block)");
}

}  // namespace

std::string TrainingSettings::Canonical() const {
  return fmt::format(
             "stage={} steps={} layers={} hidden={} heads={} sequence={} batch={} micro_steps={} "
             "bucket_bytes={} bucket_memory={} "
             "unit={} unit_blocks={} exchange={} tensor_parallel={} shard_group={} secondary_group={} "
             "sequence_parallel={} "
             "dtype={} master_weights={} reduce_type={} accumulation={} accumulation_type={} loss_scale={} "
             "first_loss_scale={} "
             "least_loss_scale={} loss_scale_growth={} loss_scale_hysteresis={} seed={} "
             "learning_rate={} "
             "warmup={} beta1={} beta2={} epsilon={} weight_decay={} clip_norm={} overlap={} prefetch={} "
             "prefetch_units={} live={} "
             "eval_every={} evaluate_at_end={} offload={}",
             stage, steps, model.layers, model.hidden, model.heads, model.sequence, batch, micro_steps,
             bucket_bytes, bucket_memory, unit, unit_blocks, exchange, tensor_parallel, shard_group,
             secondary_group, sequence_parallel, dtype, master_weights, reduce_type, accumulation,
             accumulation_type, loss_scale, first_loss_scale, least_loss_scale, loss_scale_growth,
             loss_scale_hysteresis, seed, learning_rate, warmup_steps, adamw.beta1, adamw.beta2,
             adamw.epsilon, adamw.weight_decay, clip_norm, overlap, prefetch, prefetch_units, live,
             eval_every, evaluate_at_end, offload_optimizer.substr(0, offload_optimizer.find(':'))) +
         " " + residual.Canonical();
}

at::ScalarType TrainingSettings::type() const {
  if (dtype == "bf16") return at::kBFloat16;
  return dtype == "fp16" ? at::kHalf : at::kFloat;
}

bool TrainingSettings::accumulates_locally() const {
  return accumulation == "local" || (accumulation == "default" && stage < 2);
}

bool TrainingSettings::scales_dynamically() const {
  return loss_scale == "dynamic" || (loss_scale == "default" && dtype == "fp16");
}

LossScaleSettings TrainingSettings::LossScaling() const {
  LossScaleSettings scaling;
  scaling.dynamic = scales_dynamically();
  if (scaling.dynamic) {
    scaling.first = first_loss_scale;
  } else if (loss_scale != "default") {
    scaling.first = std::stod(loss_scale);
  }
  scaling.growth_interval = loss_scale_growth;
  scaling.hysteresis = loss_scale_hysteresis;
  scaling.least = least_loss_scale;
  return scaling;
}

Status Validate(const TrainingSettings& settings) {
  // Upper bound of options that have no limit of their own. No option takes so large a number.
  constexpr double kAny = 1e18;
  const Range ranges[] = {
      {"--stage", static_cast<double>(settings.stage), 0, 3},
      {"--steps", static_cast<double>(settings.steps), 1, kAny},
      {"--layers", static_cast<double>(settings.model.layers), 1, kAny},
      {"--hidden", static_cast<double>(settings.model.hidden), 1, kAny},
      {"--heads", static_cast<double>(settings.model.heads), 1, kAny},
      {"--sequence", static_cast<double>(settings.model.sequence), 1, kAny},
      {"--batch", static_cast<double>(settings.batch), 0, kAny},
      {"--micro-steps", static_cast<double>(settings.micro_steps), 1, kAny},
      {"--tensor-parallel", static_cast<double>(settings.tensor_parallel), 1, kAny},
      {"--shard-group", static_cast<double>(settings.shard_group), 0, kAny},
      {"--secondary-group", static_cast<double>(settings.secondary_group), 0, kAny},
      {"--unit-blocks", static_cast<double>(settings.unit_blocks), 1, kAny},
      {"--prefetch-units", static_cast<double>(settings.prefetch_units), 1, kAny},
      {"--bucket-bytes", static_cast<double>(settings.bucket_bytes), 1, kAny},
      {"--learning-rate", settings.learning_rate, 0, kAny},
      {"--warmup", static_cast<double>(settings.warmup_steps), 0, kAny},
      {"--beta1", settings.adamw.beta1, 0, 0.9999999},
      {"--beta2", settings.adamw.beta2, 0, 0.9999999},
      {"--epsilon", settings.adamw.epsilon, 0, 1},
      {"--weight-decay", settings.adamw.weight_decay, 0, kAny},
      {"--clip-norm", settings.clip_norm, 1e-12, kAny},
      {"--first-loss-scale", settings.first_loss_scale, settings.least_loss_scale, kAny},
      {"--least-loss-scale", settings.least_loss_scale, 1e-6, kAny},
      {"--loss-scale-growth", static_cast<double>(settings.loss_scale_growth), 1, kAny},
      {"--loss-scale-hysteresis", static_cast<double>(settings.loss_scale_hysteresis), 1, kAny},
      {"--threads", static_cast<double>(settings.threads), 1, 1024},
      {"--eval-every", static_cast<double>(settings.eval_every), 0, kAny},
      {"--log-every", static_cast<double>(settings.log_every), 1, kAny},
      {"--offload-buffer-bytes", static_cast<double>(settings.offload_buffer_bytes), kDiskBlock, kAny},
      {"--join-timeout", static_cast<double>(settings.join_timeout_seconds), 1, 86400},
  };
  for (const auto& [option, value, low, high] : ranges) {
    // The condition is written such that NaN fails as well.
    if (value >= low && value <= high) continue;
    const std::string limit = high != kAny   ? fmt::format("{} to {}", low, high)
                              : value > high ? fmt::format("at most {}", high)
                                             : fmt::format("at least {}", low);
    return MakeError(ErrorKind::kInvalidArgument, "{} {} is out of range: {}", option, value, limit);
  }
  DYNAMICCL_CHECK_OK(ValidateWords(settings));
  DYNAMICCL_CHECK_OK(Validate(settings.checkpoint));
  DYNAMICCL_CHECK_OK(Validate(settings.residual, settings.tensor_parallel));
  DYNAMICCL_CHECK_OK(ValidateSharding(settings));
  DYNAMICCL_CHECK_OK(ValidateMemory(settings));
  if (settings.live && settings.unit == "parameter")
    return MakeError(ErrorKind::kInvalidArgument, "--live changes buckets, and --unit parameter has none");
  if (settings.model.hidden % settings.model.heads != 0) {
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "--hidden {} is not a multiple of --heads {}",
                  settings.model.hidden, settings.model.heads),
        fmt::format("--hidden {} would be", RoundUpTo(settings.model.hidden, settings.model.heads)));
  }
  return ValidateTensorDegree(settings);
}

Status ValidateForRun(const TrainingSettings& settings, int world, const TextDataset& text) {
  DYNAMICCL_CHECK_OK(CheckTensorDegree(settings.tensor_parallel, world));
  const int data_ranks = world / settings.tensor_parallel;
  DYNAMICCL_CHECK_OK(CheckShardGroups(settings.groups(), data_ranks));
  DYNAMICCL_CHECK_OK(ValidateOwners(settings, data_ranks));
  if (settings.batch % data_ranks != 0) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument,
                              "--batch {} sequences cannot be divided among {} {}ranks evenly",
                              settings.batch, data_ranks, settings.tensor_parallel == 1 ? "" : "data "),
                    fmt::format("--batch {} can", RoundUpTo(settings.batch, data_ranks)));
  }
  const int64_t bytes = static_cast<int64_t>(text.train.size());
  if (bytes <= settings.model.sequence) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "the text has {} bytes to train on, --sequence {} needs more", bytes,
                     settings.model.sequence);
  }
  const bool evaluates = settings.evaluate_at_end || settings.eval_every > 0;
  if (evaluates && text.held_out.size() < 2) {
    return MakeError(ErrorKind::kInvalidArgument, "the held-out text has {} byte(s), evaluation needs 2",
                     text.held_out.size());
  }
  return {};
}

}  // namespace dynamiccl::zero
