// SPDX-License-Identifier: Apache-2.0
// `dynamiccl-lab capped`: the largest model that each stage trains under a cap on the memory of a rank.
#include <spdlog/spdlog.h>

#include "studies/commands/trainer_study.h"
#include "studies/lab_commands.h"
#include "studies/zero/capped.h"

namespace dynamiccl {
namespace {

struct CappedCommandOptions {
  TrainerStudyOptions study;
  CappedSettings capped{.memory_cap = "32M"};
  std::string learning_rate = "3e-3";
  // "full" as in the ZeRO paper's configurations. If all activations were kept, they would hide how the
  // stages differ.
  std::string activation_checkpoints = "full";
  // The trainer's own default.
  std::string bucket_bytes = "4M";
};

// Less memory than this cannot hold any model, and is often a size without its unit.
constexpr double kLeastMemory = 1 << 20;

// Returns the complaint about a --memory that the trainer would refuse; empty if there is none.
std::string MemoryComplaint(const std::string& text) {
  std::string bytes = text;
  const std::string no_size = CLI::AsSizeValue(false)(bytes);
  if (!no_size.empty()) return no_size;
  if (std::stod(bytes) >= kLeastMemory) return {};
  return fmt::format("{} is {} bytes of memory a rank, and no model fits: at least 1M", text, bytes);
}

void RegisterCappedOptions(CommandLine& line, CappedCommandOptions& options) {
  CLI::App& app = line.app();
  RegisterTrainerStudy(app, options.study);
  app.add_option("--memory", options.capped.memory_cap,
                 "What the tensors of a rank may take, 32M for example")
      ->capture_default_str()
      ->check(CLI::Validator(MemoryComplaint, ""));
  app.add_option("--layers", options.capped.ladder.layers, "Transformer blocks of every model that is tried")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
  app.add_option("--heads", options.capped.ladder.heads,
                 "Attention heads of every model; widths are multiples of this number")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
  app.add_option("--activation-checkpoints", options.activation_checkpoints,
                 "Activations kept for the backward pass: none (all) or full (the input of each block)")
      ->capture_default_str()
      ->check(CLI::IsMember({"none", "full"}));
  app.add_option("--bucket-bytes", options.bucket_bytes, "Size of a gradient bucket (C_B)")
      ->capture_default_str();
  app.add_option("--steps", options.capped.steps, "Steps for which the largest models are trained")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000000));
  app.add_option("--eval-every", options.capped.eval_every,
                 "Steps between evaluations of that training; 0: only after the last step")
      ->capture_default_str()
      ->check(CLI::Range(0, 10000000));
  app.add_option("--seeds", options.capped.seeds,
                 "Number of seeds: each largest model is trained once with each of them")
      ->capture_default_str()
      ->check(CLI::Range(1, 100));
  app.add_option("--learning-rate", options.learning_rate, "Peak learning rate of that training")
      ->capture_default_str();
}

}  // namespace

Result<int> CappedCommand(CommandLine& line) {
  CappedCommandOptions options;
  RegisterCappedOptions(line, options);
  if (const auto exit_code = line.Parse()) return *exit_code;
  CappedSettings& settings = options.capped;
  settings.sequence = options.study.sequence;
  DYNAMICCL_TRY(settings.options, CommonTrainerOptions(options.study));
  settings.options.insert(settings.options.end(),
                          {"--learning-rate", options.learning_rate, "--activation-checkpoints",
                           options.activation_checkpoints, "--bucket-bytes", options.bucket_bytes});
  DYNAMICCL_TRY(TrainerRuns runs, OpenTrainerRuns(options.study, line));
  DYNAMICCL_TRY(const auto stages,
                FindLargestModels(runs, settings, [](const std::string& text) { spdlog::info("{}", text); }));
  const std::string header = fmt::format(
      "{} ranks, {} of memory each, {} sequences of {}, {}; held-out text after {} steps, {} seed(s)\n",
      runs.ranks(), settings.memory_cap, options.study.batch, settings.sequence, options.study.dtype,
      settings.steps, settings.seeds);
  return PrintStudy(options.study, line, header + CappedTable(stages, settings),
                    CappedJson(stages, settings));
}

}  // namespace dynamiccl
