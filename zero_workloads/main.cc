// SPDX-License-Identifier: Apache-2.0
// The program dynamiccl-zero: trains a GPT on text with ZeRO stages 0 to 3 over plain NCCL calls, one process
// a rank.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "zero_workloads/trainer.h"

namespace {

using dynamiccl::ErrorKind;
using dynamiccl::zero::TrainingSettings;

enum ExitCode { kOk = 0, kUsage = 2, kEnvironment = 3, kJobFailed = 4 };

ExitCode ExitCodeOf(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalidArgument:
    case ErrorKind::kNotFound:
    case ErrorKind::kCorrupt:
    case ErrorKind::kUnsupported:
      return kUsage;
    case ErrorKind::kUnavailable:
      return kEnvironment;
    case ErrorKind::kTimeout:
    case ErrorKind::kPeerFailed:
    case ErrorKind::kInternal:
      return kJobFailed;
  }
  return kJobFailed;
}

void AddModelOptions(CLI::App* train, TrainingSettings* settings) {
  train->add_option("--layers", settings->model.layers, "Transformer blocks.")->capture_default_str();
  train->add_option("--hidden", settings->model.hidden, "Width of the residual stream.")
      ->capture_default_str();
  train->add_option("--heads", settings->model.heads, "Attention heads; they divide --hidden.")
      ->capture_default_str();
  train->add_option("--sequence", settings->model.sequence, "Bytes that the model sees at once.")
      ->capture_default_str();
  train->add_option("--dtype", settings->dtype, "fp32, or bf16 with fp32 master weights.")
      ->capture_default_str();
  train->add_option("--seed", settings->seed, "Seed of first values and data order.")->capture_default_str();
}

void AddDataOptions(CLI::App* train, TrainingSettings* settings) {
  train->add_option("--data", settings->text.paths, "Text files, or folders of *.txt files.")->required();
  train->add_option("--held-out", settings->text.held_out,
                    "Text that is never trained on; default: the last 5 %.");
  train
      ->add_option("--eval-every", settings->eval_every,
                   "Steps between evaluations on the held-out text; 0: none.")
      ->capture_default_str();
  train->add_flag("--eval-at-end", settings->evaluate_at_end,
                  "Evaluate on the held-out text after the last step.");
  train->add_option("--json", settings->json, "Writes a JSON line for each step to this file.");
  train->add_option("--log-every", settings->log_every, "Steps between progress lines.")
      ->capture_default_str();
}

void AddTrainingOptions(CLI::App* train, TrainingSettings* settings) {
  train->add_option("--steps", settings->steps, "Optimizer steps.")->capture_default_str();
  train->add_option("--batch", settings->batch, "Sequences a micro-step, over all ranks.")
      ->capture_default_str();
  train
      ->add_option("--micro-steps", settings->micro_steps,
                   "Batches whose gradients are averaged before each optimizer step.")
      ->capture_default_str();
  train->add_option("--learning-rate", settings->learning_rate, "Peak of the schedule.")
      ->capture_default_str();
  train->add_option("--warmup", settings->warmup_steps, "Steps of linear warm-up.")->capture_default_str();
  train->add_option("--weight-decay", settings->weight_decay, "AdamW's weight decay.")->capture_default_str();
  train->add_option("--clip-norm", settings->clip_norm, "Largest norm of the gradient.")
      ->capture_default_str();
  train->add_option("--threads", settings->threads, "Threads of LibTorch in each rank.")
      ->capture_default_str();
}

void AddZeroOptions(CLI::App* train, TrainingSettings* settings) {
  train->add_option("--stage", settings->stage, "ZeRO stage 0, 1, 2 or 3.")->capture_default_str();
  train
      ->add_option("--bucket-bytes", settings->bucket_bytes,
                   "Size of a gradient bucket; K, M and G are understood.")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  train->add_flag("--overlap,!--no-overlap", settings->overlap, "Communicate while computing (default).");
  train->add_flag("--prefetch,!--no-prefetch", settings->prefetch,
                  "Stage 3: gather the next unit early (default).");
  train
      ->add_option("--join-timeout", settings->join_timeout_seconds,
                   "Seconds that ranks wait for each other at start.")
      ->capture_default_str();
}

int Fail(const dynamiccl::Error& error) {
  const char* rank = std::getenv("RANK");
  const std::string who = rank == nullptr ? "" : std::string("rank ") + rank + ": ";
  std::fputs((who + dynamiccl::Describe(error)).c_str(), stderr);
  return ExitCodeOf(error.kind);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trains a GPT on text with ZeRO stages 0 to 3 over NCCL.", "dynamiccl-zero");
  app.require_subcommand(1);
  CLI::App* train = app.add_subcommand(
      "train",
      "Trains; one process a rank, with rank and meeting point from torchrun's, Slurm's or MPI's variables.");
  TrainingSettings settings;
  AddModelOptions(train, &settings);
  AddDataOptions(train, &settings);
  AddTrainingOptions(train, &settings);
  AddZeroOptions(train, &settings);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  const dynamiccl::Status status = dynamiccl::zero::Train(settings);
  return status ? kOk : Fail(status.error());
}
