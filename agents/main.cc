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
#include "agents/structure_command.h"
#include "agents/timing_command.h"
#include "agents/train_command.h"

namespace {

using dynamiccl::ErrorKind;
using dynamiccl::Status;
using dynamiccl::agents::EvalSettings;
using dynamiccl::agents::StructureSettings;
using dynamiccl::agents::TimingSettings;
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
                    "Recorded traces with labels (.ctrace); without any, the trigger agent "
                    "learns from generated sequences alone.");
  train->add_option("--measurements", settings.measurements, "Sweeps (.measurements).")->required();
  train->add_option("-o,--output", settings.output, "The policy file to write (.dcpolicy).")->required();
  train->add_option(
      "--from", settings.from,
      "Goes on with this policy's config agent on the sweeps given, and keeps its trigger agent: "
      "for the sweep of a new site.");
  train
      ->add_option("--hold-out-sizes", settings.hold_out.sizes,
                   "Trains without every n-th size class, which eval then shows apart; 0: none.")
      ->check(CLI::Range(0, 16))
      ->capture_default_str();
  train->add_option("--hold-out-topology", settings.hold_out.topologies,
                    "Trains without these topologies, which eval then shows apart; NAME* is a beginning.");
  train->add_option("--hold-out-ranks", settings.hold_out.ranks,
                    "Trains without this number of ranks, which eval then shows apart.");
  train->add_option("--seed", settings.seed, "Equal seeds and inputs give equal files.")
      ->capture_default_str();
  train
      ->add_option("--trigger-iterations", settings.trigger_iterations,
                   "Training steps of the trigger agent.")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  train->add_option("--config-iterations", settings.config_iterations, "Training steps of the config agent.")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
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
      "held-out topologies, and the baselines learn from these.");
  eval->add_flag("--only-policies", settings.only_policies,
                 "Beside the default and the best of the training's own sweep alone: without the "
                 "baselines, which are trained or tried anew each time.");
  eval->add_flag("--hypotheses", settings.hypotheses,
                 "Prints instead what the measurements say of common beliefs about collectives.");
  eval->add_flag("--scenarios", settings.scenarios,
                 "Prints instead at which sizes protocols change, and what follows when sizes change.");
  eval->add_option("--structure", settings.structure_json,
                   "What `structure --json` wrote, for the belief about stages.");
  eval->add_option("--json", settings.json, "Writes the result as JSON to this file; - for standard output.");
  return eval;
}

CLI::App* AddStructure(CLI::App& app, StructureSettings& settings) {
  CLI::App* structure =
      app.add_subcommand("structure",
                         "Trains the trigger agent without what it is then judged on: a model "
                         "family, each framework in turn; judges it beside simpler ways.");
  structure->add_option("--job", settings.jobs,
                        "Recorded jobs (.ctrace) to judge on too: stageN=FILE, or stageN/T=FILE with T "
                        "tensor-parallel ranks. The recordings in traces/samples are judged always.");
  structure
      ->add_option("--family", settings.study.family, "Model family held out where frameworks are known.")
      ->check(CLI::IsMember({"gpt", "bert", "llama", "resnet"}))
      ->capture_default_str();
  structure->add_option("--hold-out", settings.study.hold_out,
                        "Framework groups to hold out in turn; all without it.");
  auto* const only_known =
      structure->add_flag("--only-known", settings.only_known, "No framework is held out.");
  structure->add_flag("--only-held-out", settings.only_held_out, "Only the frameworks that are held out.")
      ->excludes(only_known);
  structure->add_option("--iterations", settings.study.iterations, "Training steps of each network.")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  structure->add_option("--training-jobs", settings.study.training_jobs, "Of each framework and family.")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  structure
      ->add_option("--invented", settings.study.invented,
                   "Learns from jobs of so many frameworks that do not exist too, with habits at random.")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  structure->add_option("--test-jobs", settings.study.test_jobs, "Of each framework and family.")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  structure->add_option("--seed", settings.study.seed, "Of jobs and networks.")->capture_default_str();
  structure->add_option("--json", settings.json,
                        "Writes the result as JSON to this file; - for standard output.");
  return structure;
}

CLI::App* AddTiming(CLI::App& app, TimingSettings& settings) {
  CLI::App* timing =
      app.add_subcommand("timing",
                         "Says how soon changes of a fabric are noticed from the times of calls, "
                         "beside simpler ways and a recurrent network, at equal false alarms.");
  timing->add_option("--runs", settings.study.runs,
                     "Folder that tools/bench/timing_runs.py made; without it, modelled noise alone.");
  timing->add_option("--head-iterations", settings.study.head_iterations, "Training steps of the network.")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  timing->add_option("--simulated", settings.study.simulated, "Simulated streams of each event and factor.")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  timing
      ->add_option("--quiet-calls", settings.study.modelled_quiet_calls,
                   "Of modelled noise, to set thresholds on and as many to judge by.")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  timing->add_option("--seed", settings.study.seed, "Of simulated streams and the network.")
      ->capture_default_str();
  timing->add_option("--json", settings.json,
                     "Writes the result as JSON to this file; - for standard output.");
  return timing;
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
  app.add_option("--threads", threads,
                 "Threads of LibTorch; with more than one, equal seeds may differ in the last bits.")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  TrainSettings train_settings;
  EvalSettings eval_settings;
  const CLI::App* train = AddTrain(app, train_settings);
  StructureSettings structure_settings;
  AddEval(app, eval_settings);
  const CLI::App* structure = AddStructure(app, structure_settings);
  TimingSettings timing_settings;
  const CLI::App* timing = AddTiming(app, timing_settings);
  app.fallthrough();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  try {
    at::set_num_threads(threads);
    if (structure->parsed()) return Finish(StudyStructureCommand(structure_settings));
    if (timing->parsed()) return Finish(StudyTimingCommand(timing_settings));
    return Finish(train->parsed() ? Train(train_settings) : Evaluate(eval_settings));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return kEnvironment;
  }
}
