// SPDX-License-Identifier: Apache-2.0
// Labelled calls of random jobs of every generated framework: random models, worlds, types, buckets and
// settings.
#pragma once

#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agents/trigger/call_sequence.h"
#include "traces/generators/framework_generator.h"

namespace dynamiccl::agents {

// Frameworks that are held out together, because they share their code: all stages of DeepSpeed are one.
struct FrameworkGroup {
  std::string_view name;
  std::vector<std::string_view> generators;
};
std::span<const FrameworkGroup> AllFrameworkGroups();
// Null: no group has it.
const FrameworkGroup* GroupOf(std::string_view framework);

// Model families, as presets of traces/generators.
std::span<const std::string_view> AllFamilies();
// Tensor parallelism is of transformers, and llm.c trains GPT-2 only.
bool Trains(std::string_view framework, std::string_view family);

// One sequence for each kind of communicator of the run. The stage is a label of the communicator over which
// the model is partitioned or gradients are summed over all ranks; others (tensor parallel, copies of a
// hybrid sharding) cannot tell it.
std::vector<CallSequence> SequencesOf(const GeneratedRun& run, const std::string& name);

// What a generator needs for a job.
struct JobShape {
  std::string_view framework;
  std::string model;  // as ParseModel reads it
  WorldShape world;
  SettingTexts settings;
};
Result<GeneratedRun> RunOf(const JobShape& shape, int steps);
// One that RunOf takes.
JobShape RandomShape(std::string_view framework, std::string_view family, std::mt19937_64& random);

// A random job of the framework on a random model of the family, of at least `steps` steps and, where a step
// has few calls, of more: at least 256 calls. Its communicators' sequences; none is longer than 2048 calls.
std::vector<CallSequence> RandomJob(std::string_view framework, std::string_view family, int steps,
                                    std::mt19937_64& random);

// The same of a framework that does not exist.
std::vector<CallSequence> RandomInventedJob(std::string_view family, int steps, std::mt19937_64& random);

struct JobPlan {
  std::vector<std::string_view> frameworks;
  std::vector<std::string_view> families;
  int jobs = 12;  // of each framework and family
  int steps = 4;
  // Beside the frameworks, jobs of so many that do not exist (invented_jobs.h): each job has its own habits.
  int invented = 0;
};
// Pairs that Trains denies are left out.
std::vector<CallSequence> RandomJobs(const JobPlan& plan, std::mt19937_64& random);

}  // namespace dynamiccl::agents
