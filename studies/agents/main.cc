// SPDX-License-Identifier: Apache-2.0
// The program dynamiccl-lab-agents: studies of the agents for the pages of docs/results.
#include <ATen/Parallel.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "agents/repeatable_math.h"
#include "studies/agents/config_commands.h"
#include "studies/agents/effect_command.h"
#include "studies/agents/structure/policy_states.h"
#include "studies/agents/structure_command.h"
#include "studies/agents/timing_command.h"
#include "tools/exit_code.h"

namespace {

using dynamiccl::Status;
using dynamiccl::agents::EffectSettings;
using dynamiccl::agents::EvalSettings;
using dynamiccl::agents::HypothesesSettings;
using dynamiccl::agents::StatesSettings;
using dynamiccl::agents::StructureSettings;
using dynamiccl::agents::TimingSettings;

void AddPolicyAndSweeps(CLI::App& command, EvalSettings& settings) {
  command
      .add_option(
          "--policy", settings.policies,
          "The policy file; several files of one training with other seeds give intervals over seeds.")
      ->required();
  command.add_option("--measurements", settings.measurements,
                     "Sweeps; what training held out is known from the policy and shown apart.");
}

CLI::App* AddBaselines(CLI::App& app, EvalSettings& settings) {
  CLI::App* baselines = app.add_subcommand(
      "baselines",
      "Judges a policy as `dynamiccl eval` does, beside rules, searches and other learners, which "
      "are trained or tried anew each time.");
  AddPolicyAndSweeps(*baselines, settings);
  baselines->add_option("--trace", settings.traces, "Traces with labels that training never saw.");
  baselines->add_option(
      "--trained-on", settings.trained_on,
      "Sweeps of the policy's training, where --measurements gives others: all of those are then "
      "held-out topologies, and the baselines learn from these.");
  baselines->add_option("--json", settings.json,
                        "Writes the result as JSON to this file; - for standard output.");
  return baselines;
}

CLI::App* AddScenarios(CLI::App& app, EvalSettings& settings) {
  CLI::App* scenarios = app.add_subcommand(
      "scenarios", "Says at which sizes protocols change, and what follows when sizes change.");
  AddPolicyAndSweeps(*scenarios, settings);
  return scenarios;
}

CLI::App* AddHypotheses(CLI::App& app, HypothesesSettings& settings) {
  CLI::App* hypotheses =
      app.add_subcommand("hypotheses", "Says what sweeps say of common beliefs about collectives.");
  hypotheses->add_option("--measurements", settings.measurements, "Sweeps (.measurements).");
  hypotheses->add_option("--structure", settings.structure_json,
                         "What `structure --json` wrote, for the belief about stages.");
  return hypotheses;
}

CLI::App* AddEffects(CLI::App& app, EffectSettings& settings) {
  CLI::App* effects =
      app.add_subcommand("effects",
                         "Leaves out one fabric after the other, predicts what configs do to training steps "
                         "there, and says what each input is worth.");
  effects->add_option("--measurements", settings.measurements, "Effects on steps (.measurements).")
      ->required();
  effects->add_option("--seeds", settings.seeds, "Trainings whose predictions are averaged.")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  effects->add_option("--iterations", settings.training.iterations, "Training steps of each network.")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  effects->add_option("--seed", settings.training.seed, "Of the first training.")->capture_default_str();
  return effects;
}

CLI::App* AddStructure(CLI::App& app, StructureSettings& settings) {
  CLI::App* structure =
      app.add_subcommand("structure",
                         "Trains the structure agent without what it is then judged on: a model "
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

CLI::App* AddStates(CLI::App& app, StatesSettings& settings) {
  CLI::App* states =
      app.add_subcommand("states",
                         "Judges the structure agents of finished policies on generated jobs, and says after "
                         "how many calls of a repeated step they are in an earlier state.");
  states->add_option("--policy", settings.policies, "Policy files, judged on the same jobs.")->required();
  states->add_option("--jobs", settings.jobs, "Random jobs of each framework and model family.")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  states->add_option("--seed", settings.seed, "Of the random jobs.")->capture_default_str();
  return states;
}

CLI::App* AddTiming(CLI::App& app, TimingSettings& settings) {
  CLI::App* timing =
      app.add_subcommand("timing",
                         "Says how soon changes of a fabric are noticed from the times of calls, "
                         "beside simpler ways and a recurrent network, at equal false alarms.");
  timing->add_option("--runs", settings.study.runs,
                     "Folder that studies/agents/timing_runs.py made; without it, modelled noise alone.");
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
  if (status) return dynamiccl::kExitOk;
  std::fputs(dynamiccl::Describe(status.error()).c_str(), stderr);
  return dynamiccl::ExitCodeOf(status.error().kind);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Studies of DynamICCL's agents.", "dynamiccl-lab-agents"};
  app.require_subcommand(1);
  int threads = 1;
  app.add_option("--threads", threads,
                 "Threads of LibTorch. The agents' trainings give equal results with any number.")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  EffectSettings effect_settings;
  EvalSettings eval_settings;
  HypothesesSettings hypotheses_settings;
  StatesSettings states_settings;
  StructureSettings structure_settings;
  TimingSettings timing_settings;
  const CLI::App* baselines = AddBaselines(app, eval_settings);
  const CLI::App* effects = AddEffects(app, effect_settings);
  const CLI::App* scenarios = AddScenarios(app, eval_settings);
  const CLI::App* hypotheses = AddHypotheses(app, hypotheses_settings);
  const CLI::App* states = AddStates(app, states_settings);
  const CLI::App* structure = AddStructure(app, structure_settings);
  AddTiming(app, timing_settings);
  app.fallthrough();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? dynamiccl::kExitOk : dynamiccl::kExitUsage;
  }
  try {
    dynamiccl::agents::UseRepeatableKernels();
    at::set_num_threads(threads);
    if (baselines->parsed()) return Finish(JudgeBesideBaselines(eval_settings));
    if (effects->parsed()) return Finish(StudyEffectsCommand(effect_settings));
    if (scenarios->parsed()) return Finish(PrintScenarios(eval_settings));
    if (hypotheses->parsed()) return Finish(PrintHypotheses(hypotheses_settings));
    if (states->parsed()) return Finish(PrintStates(states_settings));
    if (structure->parsed()) return Finish(StudyStructureCommand(structure_settings));
    return Finish(StudyTimingCommand(timing_settings));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return dynamiccl::kExitEnvironment;
  }
}
