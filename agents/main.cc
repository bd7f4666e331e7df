// SPDX-License-Identifier: Apache-2.0
// The program dynamiccl-agents: trains both agents from recorded traces and sweeps, and judges policies. It
// runs offline and is never loaded into a job; jobs load the policy file that it writes. This file declares
// the options and turns errors into exit codes: 0 success, 2 wrong usage or input, 3 an unsuitable
// environment.
#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "agents/eval_command.h"
#include "agents/repeatable_math.h"
#include "agents/train_command.h"

namespace {

using dynamiccl::ErrorKind;
using dynamiccl::Status;
using dynamiccl::agents::EvalSettings;
using dynamiccl::agents::TrainSettings;

enum ExitCode { kOk = 0, kUsage = 2, kEnvironment = 3 };

ExitCode ExitCodeOf(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalidArgument:
    case ErrorKind::kNotFound:
    case ErrorKind::kCorrupt:
    case ErrorKind::kUnsupported:
      return kUsage;
    default:
      return kEnvironment;
  }
}

CLI::App* AddTrain(CLI::App& app, TrainSettings& settings) {
  CLI::App* train = app.add_subcommand("train", "Trains both agents and writes a policy file.");
  train->add_option("--trace", settings.traces,
                    "Recorded traces with labels (.ctrace); without any, the structure agent "
                    "learns from generated sequences alone.");
  train
      ->add_option("--measurements", settings.measurements,
                   "Sweeps, and effects on training steps from experiments in jobs (.measurements).")
      ->required();
  train->add_option("-o,--output", settings.output,
                    "The policy file to write (.dcpolicy); not needed with --inputs-only.");
  train->add_option(
      "--from", settings.from,
      "Goes on with this policy, for a new site. Sweeps train the config agent's networks and the values at "
      "the trees' leaves further, and traces the structure agent (roles, phases, stages and their "
      "thresholds). Effects on steps replace what the policy predicts of steps. The trees' splits and the "
      "range of NCCL releases stay.");
  train
      ->add_option("--hold-out-sizes", settings.hold_out.sizes,
                   "Trains without every n-th size class, which eval then shows apart; 0: none.")
      ->check(CLI::Range(0, 16))
      ->capture_default_str();
  train->add_option("--hold-out-topology", settings.hold_out.topologies,
                    "Trains without these topologies, which eval then shows apart; NAME* is a beginning.");
  train
      ->add_option("--hold-out-ranks", settings.hold_out.ranks,
                   "Trains without this number of ranks, which eval then shows apart; 0: none.")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  train
      ->add_option("--seed", settings.seed,
                   "Equal seeds and inputs give equal files, on every x86-64 processor with AVX2 and the "
                   "same libraries.")
      ->capture_default_str();
  train
      ->add_option("--structure-iterations", settings.structure_iterations,
                   "Training steps of the structure agent.")
      ->check(CLI::PositiveNumber)
      ->excludes("--from")
      ->capture_default_str();
  train->add_option("--config-iterations", settings.config_iterations, "Training steps of the config agent.")
      ->check(CLI::PositiveNumber)
      ->excludes("--from")
      ->capture_default_str();
  train->add_flag("--inputs-only", settings.inputs_only,
                  "Reads and draws what would be learnt from, prints its checksums, and trains nothing.");
  train->add_option("--json", settings.json,
                    "Writes what was trained as JSON to this file; - for standard output.");
  return train;
}

CLI::App* AddEval(CLI::App& app, EvalSettings& settings) {
  CLI::App* eval = app.add_subcommand("eval", "Judges a policy on traces and measurements.");
  eval->add_option(
      "--policy", settings.policies,
      "The policy file; several files of one training with other seeds give intervals over seeds.");
  eval->add_option("--trace", settings.traces, "Traces with labels that training never saw.");
  eval->add_option("--measurements", settings.measurements,
                   "Sweeps; what training held out is known from the policy and shown apart.");
  eval->add_option(
      "--trained-on", settings.trained_on,
      "Sweeps of the policy's training, where --measurements gives others: all of those are then "
      "held-out topologies.");
  eval->add_option("--json", settings.json, "Writes the result as JSON to this file; - for standard output.");
  return eval;
}

// `train` and `eval` both call this function, so that the help of each shows --threads.
void AddThreads(CLI::App& command, int& threads) {
  command
      .add_option("--threads", threads,
                  "Threads of LibTorch. The result does not depend on their number, and few operations use "
                  "more than one.")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
}

// Describes wrong usage as Finish describes other errors.
std::string UsageMessage(const CLI::App* app, const CLI::Error& error) {
  std::string command = "dynamiccl";
  for (const CLI::App* const action : app->get_subcommands()) command += " " + action->get_name();
  return dynamiccl::Describe(
      {ErrorKind::kInvalidArgument, command + ": " + error.what(), "see `" + command + " --help`"});
}

int Finish(const Status& status) {
  if (status) return kOk;
  std::fputs(dynamiccl::Describe(status.error()).c_str(), stderr);
  return ExitCodeOf(status.error().kind);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Trains and judges DynamICCL's agents.", "dynamiccl-agents"};
  app.require_subcommand(1);
  int threads = 1;
  TrainSettings train_settings;
  EvalSettings eval_settings;
  CLI::App* const train = AddTrain(app, train_settings);
  AddThreads(*train, threads);
  AddThreads(*AddEval(app, eval_settings), threads);
  app.fallthrough();
  app.failure_message(UsageMessage);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  try {
    dynamiccl::agents::UseRepeatableKernels();
    at::set_num_threads(threads);
    return Finish(train->parsed() ? Train(train_settings) : Evaluate(eval_settings));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return kEnvironment;
  }
}
