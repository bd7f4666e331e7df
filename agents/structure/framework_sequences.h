// SPDX-License-Identifier: Apache-2.0
// Labelled calls of random jobs of every generated framework: random models, worlds, data types, bucket sizes
// and settings. The generators themselves are in traces/generators.
#pragma once

#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agents/structure/call_sequence.h"
#include "traces/generators/framework_generator.h"

namespace dynamiccl::agents {

// Frameworks that are held out together because they share code; for example all stages of DeepSpeed are one
// group.
struct FrameworkGroup {
  std::string_view name;
  std::vector<std::string_view> generators;
};
// All groups, in a fixed order.
std::span<const FrameworkGroup> AllFrameworkGroups();
// The framework's group; null if no group has it.
const FrameworkGroup* GroupOf(std::string_view framework);

// Model families, named as the presets of traces/generators.
std::span<const std::string_view> AllFamilies();
// Returns true if the framework can train models of the family: Megatron trains transformers only, and llm.c
// only GPT-2.
bool Trains(std::string_view framework, std::string_view family);

// One sequence for each kind of communicator of the run. The stage is a label only on communicators over
// which the model is partitioned or gradients are summed over all ranks. Other communicators (tensor
// parallelism, replicas of hybrid sharding) cannot reveal it.
std::vector<CallSequence> SequencesOf(const GeneratedRun& run, const std::string& name);

// The arguments of a generator for one job.
struct JobShape {
  std::string_view framework;
  // The model, in the form that ParseModel reads.
  std::string model;
  WorldShape world;
  SettingTexts settings;
};
// Generates `steps` steps of the job. Returns an error if model or settings do not fit the framework.
Result<GeneratedRun> RunOf(const JobShape& shape, int steps);
// A random shape that RunOf accepts. Throws std::logic_error if it finds none, which would mean a mistake in
// the ranges of the settings.
JobShape RandomShape(std::string_view framework, std::string_view family, std::mt19937_64& random);

// The sequences of a random job of the framework on a random model of the family. The job has at least
// `steps` steps. It has more if a step has few calls: enough for 256 calls, but at most 64 steps. No sequence
// is longer than 2048 calls.
std::vector<CallSequence> RandomJob(std::string_view framework, std::string_view family, int steps,
                                    std::mt19937_64& random);

// Like RandomJob, for a framework that does not exist (invented_jobs.h).
std::vector<CallSequence> RandomInventedJob(std::string_view family, int steps, std::mt19937_64& random);

// Describes a set of random jobs.
struct JobPlan {
  std::vector<std::string_view> frameworks = {};
  std::vector<std::string_view> families = {};
  // Number of jobs of each pair of framework and family.
  int jobs = 12;
  int steps = 4;
  // Number of invented frameworks in addition to the real ones. Each job of an invented framework has its own
  // habits.
  int invented = 0;
};
// All jobs of the plan. Pairs that Trains rejects are left out.
std::vector<CallSequence> RandomJobs(const JobPlan& plan, std::mt19937_64& random);

}  // namespace dynamiccl::agents
