// SPDX-License-Identifier: Apache-2.0
#include "zero_workloads/training_settings.h"

namespace dynamiccl::zero {
namespace {

struct Range {
  const char* option;
  double value;
  double low;
  double high;
};

int64_t RoundUpTo(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

std::string TrainingSettings::Canonical() const {
  return fmt::format(
      "stage={} steps={} layers={} hidden={} heads={} sequence={} batch={} micro_steps={} bucket_bytes={} "
      "dtype={} seed={} "
      "learning_rate={} "
      "warmup={} weight_decay={} clip_norm={} overlap={} prefetch={} eval_every={} evaluate_at_end={}",
      stage, steps, model.layers, model.hidden, model.heads, model.sequence, batch, micro_steps, bucket_bytes,
      dtype, seed, learning_rate, warmup_steps, weight_decay, clip_norm, overlap, prefetch, eval_every,
      evaluate_at_end);
}

Status Validate(const TrainingSettings& settings) {
  constexpr double kAny = 1e18;
  const Range ranges[] = {
      {"--stage", static_cast<double>(settings.stage), 0, 3},
      {"--steps", static_cast<double>(settings.steps), 1, kAny},
      {"--layers", static_cast<double>(settings.model.layers), 1, kAny},
      {"--hidden", static_cast<double>(settings.model.hidden), 1, kAny},
      {"--heads", static_cast<double>(settings.model.heads), 1, kAny},
      {"--sequence", static_cast<double>(settings.model.sequence), 1, kAny},
      {"--batch", static_cast<double>(settings.batch), 1, kAny},
      {"--micro-steps", static_cast<double>(settings.micro_steps), 1, kAny},
      {"--bucket-bytes", static_cast<double>(settings.bucket_bytes), 1, kAny},
      {"--learning-rate", settings.learning_rate, 0, kAny},
      {"--warmup", static_cast<double>(settings.warmup_steps), 0, kAny},
      {"--weight-decay", settings.weight_decay, 0, kAny},
      {"--clip-norm", settings.clip_norm, 1e-12, kAny},
      {"--threads", static_cast<double>(settings.threads), 1, 1024},
      {"--eval-every", static_cast<double>(settings.eval_every), 0, kAny},
      {"--log-every", static_cast<double>(settings.log_every), 1, kAny},
      {"--join-timeout", static_cast<double>(settings.join_timeout_seconds), 1, 86400},
  };
  for (const auto& [option, value, low, high] : ranges) {
    // Written so that NaN fails too.
    if (value >= low && value <= high) continue;
    const std::string limit =
        high == kAny ? fmt::format("at least {}", low) : fmt::format("{} to {}", low, high);
    return MakeError(ErrorKind::kInvalidArgument, "{} {} is out of range: {}", option, value, limit);
  }
  if (settings.dtype != "fp32" && settings.dtype != "bf16") {
    return MakeError(ErrorKind::kInvalidArgument, "--dtype {}: fp32 or bf16", settings.dtype);
  }
  if (settings.model.hidden % settings.model.heads != 0) {
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "--hidden {} is not a multiple of --heads {}",
                  settings.model.hidden, settings.model.heads),
        fmt::format("--hidden {} would be", RoundUpTo(settings.model.hidden, settings.model.heads)));
  }
  return {};
}

Status ValidateForRun(const TrainingSettings& settings, int world, const TextDataset& text) {
  if (settings.batch % world != 0) {
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "--batch {} sequences cannot be divided among {} ranks evenly",
                  settings.batch, world),
        fmt::format("--batch {} can", RoundUpTo(settings.batch, world)));
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
