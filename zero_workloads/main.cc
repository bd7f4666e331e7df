// SPDX-License-Identifier: Apache-2.0
// The program dynamiccl-zero. `train` trains a GPT on text with ZeRO stages 0 to 3 over plain NCCL calls,
// with one process for each rank. `estimate` predicts the memory of a run. `checkpoint` handles a run's
// checkpoints.
//
// This file declares the options of `train` and turns errors into exit codes: 0 success, 2 wrong usage or
// input, 3 an unsuitable environment, 4 a job that failed.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "zero_workloads/checkpoint/checkpoint_command.h"
#include "zero_workloads/estimate/estimate_command.h"
#include "zero_workloads/estimate/model_preset.h"
#include "zero_workloads/ineffective_options.h"
#include "zero_workloads/parallel/rank_environment.h"
#include "zero_workloads/settings_arguments.h"
#include "zero_workloads/trainer.h"
#include "zero_workloads/training_preset.h"

namespace {

using dynamiccl::ErrorKind;
using dynamiccl::zero::TrainingSettings;

enum ExitCode { kOk = 0, kUsage = 2, kEnvironment = 3, kJobFailed = 4 };

// Exit codes distinguish errors by who can correct them: the user, the machine's owner, or nobody (run
// again).
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

void AddModelOptions(CLI::App* train, TrainingSettings* settings, std::string* preset) {
  train->add_option("--preset", *preset,
                    "Shape, tensor parallelism and sequences a rank of a known model, where no option says "
                    "otherwise; refused where it does not fit in memory: " +
                        dynamiccl::zero::ModelPresetNames() + ".");
  train->add_option("--layers", settings->model.layers, "Transformer blocks.")->capture_default_str();
  train->add_option("--hidden", settings->model.hidden, "Width of the residual stream.")
      ->capture_default_str();
  train->add_option("--heads", settings->model.heads, "Attention heads; they divide --hidden.")
      ->capture_default_str();
  train->add_option("--sequence", settings->model.sequence, "Bytes that the model sees at once.")
      ->capture_default_str();
  train->add_option("--dtype", settings->dtype, "fp32, or bf16 or fp16 with fp32 master weights.")
      ->capture_default_str();
  train->add_flag("!--no-master-weights", settings->master_weights,
                  "Round the weights to --dtype in every step, to see how training stalls.");
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
  train->add_option("--tensorboard", settings->tensorboard,
                    "Writes each step's scalars for TensorBoard to this folder.");
  train->add_option("--log-every,--steps-per-print", settings->log_every, "Steps between progress lines.")
      ->capture_default_str();
}

void AddTrainingOptions(CLI::App* train, TrainingSettings* settings) {
  train->add_option("--steps", settings->steps, "Optimizer steps.")->capture_default_str();
  train
      ->add_option("--batch", settings->batch,
                   "Sequences a micro-step, over all ranks; auto: as many as fit under --memory-cap.")
      ->transform(CLI::Validator(
          [](std::string& text) {
            if (text == "0") return std::string("0 is out of range: at least 1, or auto");
            if (text == "auto") text = "0";
            return std::string();
          },
          ""))
      ->capture_default_str();
  train
      ->add_option("--micro-steps,--gradient-accumulation-steps", settings->micro_steps,
                   "Batches whose gradients are averaged before each optimizer step.")
      ->capture_default_str();
  train->add_option("--learning-rate", settings->learning_rate, "Peak of the schedule.")
      ->capture_default_str();
  train->add_option("--warmup", settings->warmup_steps, "Steps of linear warm-up.")->capture_default_str();
  train->add_option("--beta1", settings->adamw.beta1, "AdamW: decay of the first moment.")
      ->capture_default_str();
  train->add_option("--beta2", settings->adamw.beta2, "AdamW: decay of the second moment.")
      ->capture_default_str();
  train->add_option("--epsilon", settings->adamw.epsilon, "AdamW's epsilon.")->capture_default_str();
  train->add_option("--weight-decay", settings->adamw.weight_decay, "AdamW's weight decay.")
      ->capture_default_str();
  train->add_option("--clip-norm,--gradient-clipping", settings->clip_norm, "Largest norm of the gradient.")
      ->capture_default_str();
  train->add_option("--threads", settings->threads, "Threads of LibTorch in each rank.")
      ->capture_default_str();
}

void AddPrecisionOptions(CLI::App* train, TrainingSettings* settings) {
  train
      ->add_option("--reduce-type", settings->reduce_type,
                   "Type of gradients while ranks sum them: model (as --dtype) or fp32.")
      ->capture_default_str();
  train
      ->add_option("--accumulation", settings->accumulation,
                   "Where gradients of several micro-steps are added up: local (all of them on every rank, "
                   "summed over "
                   "ranks once a step), sharded (stages 2 and 3: summed in each micro-step); default: local "
                   "in stages 0 "
                   "and 1, sharded in 2 and 3.")
      ->capture_default_str();
  train->add_option("--accumulation-type", settings->accumulation_type, "Type of local sums: fp32 or model.")
      ->capture_default_str();
  train
      ->add_option("--loss-scale", settings->loss_scale,
                   "dynamic, or a number; default: dynamic with fp16, else 1.")
      ->capture_default_str();
  train->add_option("--first-loss-scale", settings->first_loss_scale, "Dynamic: the scale to start with.")
      ->capture_default_str();
  train
      ->add_option("--least-loss-scale", settings->least_loss_scale,
                   "Dynamic: an overflow at this scale ends the run.")
      ->capture_default_str();
  train
      ->add_option("--loss-scale-growth", settings->loss_scale_growth,
                   "Dynamic: steps without overflow until the scale doubles.")
      ->capture_default_str();
  train
      ->add_option("--loss-scale-hysteresis", settings->loss_scale_hysteresis,
                   "Dynamic: overflows until the scale halves.")
      ->capture_default_str();
}

void AddMemoryOptions(CLI::App* train, TrainingSettings* settings) {
  train->add_option(
      "--memory-taken", settings->memory_taken,
      "What others take of each rank's memory: STEP:SIZE,... or file:PATH, which is read before "
      "every step.");
  train
      ->add_option(
          "--offload-optimizer", settings->offload_optimizer,
          "Where the optimizer's states are between steps: none (on the device), cpu (in host memory, "
          "which a run on CPUs keeps apart from --memory-cap), or nvme:FOLDER (in files).")
      ->capture_default_str();
  train
      ->add_option("--offload-buffer-bytes", settings->offload_buffer_bytes,
                   "Bytes of each state that go to the optimizer and back at a time.")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
}

void AddZeroOptions(CLI::App* train, TrainingSettings* settings) {
  train->add_option("--stage,--zero-stage", settings->stage, "ZeRO stage 0, 1, 2 or 3.")
      ->capture_default_str();
  train
      ->add_option("--tensor-parallel", settings->tensor_parallel,
                   "Ranks that compute one replica of the model together; ZeRO divides over the others.")
      ->capture_default_str();
  train
      ->add_option("--shard-group", settings->shard_group,
                   "Hybrid sharding: ZeRO divides over groups of so many neighbouring data ranks, and the "
                   "groups hold copies; 0: over all of them.")
      ->capture_default_str();
  train
      ->add_option("--secondary-group", settings->secondary_group,
                   "Stage 3: groups of so many neighbours hold a second copy of the parameters, from which "
                   "backward passes gather (ZeRO++'s hpZ); 0: no such copy.")
      ->capture_default_str();
  train->add_flag("--sequence-parallel", settings->sequence_parallel,
                  "Tensor ranks divide the sequence too, where they do not divide layers.");
  train
      ->add_option(
          "--bucket-bytes", settings->bucket_bytes,
          "Size of a gradient bucket; K, M and G are understood; all: one bucket for the whole model.")
      ->transform(CLI::AsSizeValue(false))
      ->transform(CLI::Validator(
          [](std::string& size) {
            if (size == "all") size = std::to_string(dynamiccl::zero::kOneBucketForAll);
            return std::string();
          },
          ""))
      ->capture_default_str();
  train
      ->add_option("--bucket-memory", settings->bucket_memory,
                   "Memory of gradient buckets and their sums. ordinary: LibTorch's; registered: "
                   "ncclMemAlloc and ncclCommRegister (NCCL 2.19 and later); window: ncclMemAlloc and "
                   "ncclCommWindowRegister (2.27 and later).")
      ->capture_default_str();
  train
      ->add_option("--join-timeout", settings->join_timeout_seconds,
                   "Seconds that ranks wait for each other at start.")
      ->capture_default_str();
}

// Adds the options that say what is communicated in one call, by which collective, and when.
void AddScheduleOptions(CLI::App* train, TrainingSettings* settings) {
  train
      ->add_option("--unit", settings->unit,
                   "block: parameters of a block together, gradients in buckets; half_block: attention and "
                   "feed-forward network apart; parameter: one collective a parameter, no buckets.")
      ->capture_default_str();
  train
      ->add_option("--unit-blocks", settings->unit_blocks,
                   "With --unit block: so many neighbouring blocks are one unit.")
      ->capture_default_str();
  train
      ->add_option("--exchange", settings->exchange,
                   "collective: ReduceScatter and AllGather; owner: for each rank's part a Reduce to it and "
                   "a Broadcast from it, as the ZeRO paper has it; layer_owner: rank i mod N owns unit i "
                   "whole; all_reduce (stages 1 and 2): gradients by "
                   "AllReduce, as DeepSpeed sums them, and AllGather.")
      ->capture_default_str();
  train->add_flag("--overlap,--overlap-comm,!--no-overlap,!--no-overlap-comm", settings->overlap,
                  "Communicate while computing (default).");
  train->add_flag("--prefetch,!--no-prefetch", settings->prefetch,
                  "Stage 3: gather the next unit early (default).");
  train
      ->add_option("--prefetch-units", settings->prefetch_units,
                   "Stage 3: how many units are gathered early; each takes the memory of one more unit.")
      ->capture_default_str();
  train->add_flag(
      "--live", settings->live,
      "Take the live values bucket_bytes and prefetch (a number of units) before each step, under DynamICCL "
      "in mode adaptive.");
}

void AddCheckpointOptions(CLI::App* train, dynamiccl::zero::CheckpointSettings* settings) {
  train->add_option("--checkpoint-dir", settings->directory,
                    "Folder of checkpoints, one that all hosts share; saved after the last step at least.");
  train
      ->add_option("--checkpoint-every", settings->every,
                   "Steps between checkpoints; 0: after the last only.")
      ->capture_default_str();
  train->add_option("--keep-checkpoints", settings->keep, "Newest checkpoints that stay.")
      ->capture_default_str();
  train->add_flag("--checkpoint-async", settings->async, "Write checkpoints while training goes on.");
  train->add_option(
      "--resume", settings->resume,
      "Go on from the checkpoint: latest (of those that are intact; none yet: start anew), or a "
      "number of steps.");
}

void AddResidualOptions(CLI::App* train, dynamiccl::zero::ResidualSettings* residual) {
  train
      ->add_option("--activation-checkpoints", residual->activation_checkpoints,
                   "What is kept of a block for its backward pass: none (all activations), full (its input), "
                   "partitioned (P_a: a part of its input on each tensor-parallel rank), partitioned_cpu "
                   "(P_a+cpu: the part in host memory), auto (what takes least time among what fits).")
      ->capture_default_str();
  train->add_flag("--activation-prefetch,!--no-activation-prefetch", residual->activation_prefetch,
                  "Partitioned checkpoints: gather the next block's input while a block is computed again "
                  "(default).");
  train->add_flag(
      "--contiguous-pools,!--no-contiguous-pools", residual->contiguous_pools,
      "M_D: checkpoints and gradients that outlive their block lie in memory taken once, in one piece.");
  train->add_option(
      "--paper-config", residual->config,
      "The ZeRO paper's C1 to C5: sets --stage, --activation-checkpoints and --contiguous-pools.");
  train
      ->add_option("--memory-cap", residual->memory_cap,
                   "Memory that the tensors of a rank may take, 64M for example; default: what there is.")
      ->transform(CLI::AsSizeValue(false));
  train
      ->add_option("--memory-allocator", residual->memory_allocator,
                   "How capped host memory is divided: first_fit, or caching as LibTorch does on CUDA.")
      ->capture_default_str();
}

// Prints the error with the rank, if there is one, and returns its exit code.
int Fail(const dynamiccl::Error& error) {
  const char* rank = std::getenv("RANK");
  const std::string who = rank == nullptr ? "" : std::string("rank ") + rank + ": ";
  std::fputs((who + dynamiccl::Describe(error)).c_str(), stderr);
  return ExitCodeOf(error.kind);
}

// Describes wrong usage as Fail describes other errors. The ranks have equal arguments, so only the first one
// says what is wrong.
std::string UsageMessage(const CLI::App* app, const CLI::Error& error) {
  const auto environment = dynamiccl::zero::ReadRankEnvironment();
  if (environment && environment->rank > 0) return "";
  std::string command = "dynamiccl zero";
  for (const CLI::App* const action : app->get_subcommands()) command += " " + action->get_name();
  return dynamiccl::Describe(
      {ErrorKind::kInvalidArgument, command + ": " + error.what(), "see `" + command + " --help`"});
}

// Appends the options of settings files to the arguments, and prints the files' notes on rank 0. `translated`
// receives the options that were translated from a file of another program.
dynamiccl::Status AddSettingsFiles(const CLI::App& train, std::vector<std::string>* arguments,
                                   std::map<std::string, std::string>* translated) {
  DYNAMICCL_TRY(const dynamiccl::zero::RankEnvironment environment, dynamiccl::zero::ReadRankEnvironment());
  std::vector<std::string> own(arguments->begin() + 1, arguments->end());
  DYNAMICCL_TRY(const auto all, dynamiccl::zero::WithSettingsFiles(train, std::move(own), environment.world));
  arguments->resize(1);
  arguments->insert(arguments->end(), all.arguments.begin(), all.arguments.end());
  *translated = all.translated;
  if (environment.rank > 0) return {};
  for (const std::string& note : all.notes) std::fputs((note + "\n").c_str(), stderr);
  return {};
}

// Applies a model preset and one of the ZeRO paper's configurations to options that were not given. Refuses a
// preset that does not fit into memory, and options that do nothing. Options in `translated` that do nothing
// are not refused: rank 0 prints a note about each.
dynamiccl::Status Complete(const CLI::App& train, const std::string& preset,
                           const std::map<std::string, std::string>& translated, TrainingSettings* settings) {
  const auto given = [&train](const char* option) { return train.count(option) > 0; };
  DYNAMICCL_TRY(const auto environment, dynamiccl::zero::ReadRankEnvironment());
  DYNAMICCL_CHECK_OK(dynamiccl::zero::TakeModelPreset(preset, given, environment.world, settings));
  DYNAMICCL_CHECK_OK(
      dynamiccl::zero::TakePaperConfig(given, settings->bucket_bytes, &settings->stage, &settings->residual));
  DYNAMICCL_TRY(const auto notes, dynamiccl::zero::NotesOfIneffectiveOptions(given, translated, *settings));
  if (environment.rank <= 0)
    for (const std::string& note : notes) std::fputs((note + "\n").c_str(), stderr);
  return dynamiccl::zero::CheckPresetFits(preset, *settings, environment.world,
                                          dynamiccl::zero::RanksOnThisMachine(environment.world),
                                          dynamiccl::zero::AvailableHostBytes());
}

}  // namespace

int main(int argc, char** argv) {
  // Ignoring SIGXFSZ makes a write beyond the limit on a file's size fail with an error message. Otherwise
  // the signal would kill the process.
  std::signal(SIGXFSZ, SIG_IGN);
  CLI::App app("Trains a GPT on text with ZeRO stages 0 to 3 over NCCL.", "dynamiccl-zero");
  app.require_subcommand(1);
  CLI::App* train = app.add_subcommand(
      "train",
      "Trains; one process a rank, with rank and rendezvous from torchrun's, Slurm's or MPI's variables.");
  TrainingSettings settings;
  std::string preset;
  std::map<std::string, std::string> translated;
  AddModelOptions(train, &settings, &preset);
  AddDataOptions(train, &settings);
  AddTrainingOptions(train, &settings);
  AddPrecisionOptions(train, &settings);
  AddZeroOptions(train, &settings);
  AddScheduleOptions(train, &settings);
  AddMemoryOptions(train, &settings);
  AddCheckpointOptions(train, &settings.checkpoint);
  AddResidualOptions(train, &settings.residual);
  dynamiccl::zero::AddSettingsFileOptions(train);
  CLI::App* estimate =
      app.add_subcommand("estimate", "What each rank's memory must hold, by stage; starts nothing.");
  dynamiccl::zero::EstimateCommand estimate_command;
  estimate_command.Register(*estimate);
  CLI::App* checkpoint =
      app.add_subcommand("checkpoint", "Lists, verifies, exports and imports checkpoints.");
  dynamiccl::zero::CheckpointCommand checkpoint_command;
  checkpoint_command.Register(*checkpoint);
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && arguments[0] == train->get_name()) {
    const auto status = AddSettingsFiles(*train, &arguments, &translated);
    if (!status) return Fail(status.error());
  }
  try {
    app.failure_message(UsageMessage);
    std::reverse(arguments.begin(), arguments.end());  // CLI11 expects reversed order
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  if (estimate->parsed()) {
    const auto text = estimate_command.Run();
    return text ? std::fputs(text->c_str(), stdout), kOk : Fail(text.error());
  }
  dynamiccl::Status status;
  try {
    if (checkpoint->parsed()) {
      status = checkpoint_command.Run();
    } else if (status = Complete(*train, preset, translated, &settings); status) {
      status = dynamiccl::zero::Train(settings);
    }
  } catch (const std::exception& failure) {
    status = dynamiccl::MakeError(dynamiccl::ErrorKind::kInternal, "{}", failure.what());
  }
  return status ? kOk : Fail(status.error());
}
