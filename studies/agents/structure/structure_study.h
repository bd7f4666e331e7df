// SPDX-License-Identifier: Apache-2.0
// Measures what the structure agent recognises in jobs unlike those that it learned from, and compares the
// agent with simpler ways. The jobs are known frameworks on a model family that the agent never saw, each
// framework that it never saw, recorded jobs, and changes of a job's sizes. The network is trained once for
// each split.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "agents/evaluation/structure_accuracy.h"
#include "agents/structure/structure_export.h"
#include "agents/structure/structure_training.h"
#include "src/base/status.h"
#include "studies/agents/structure/structure_changes.h"

namespace dynamiccl::agents {

// Settings of the study.
struct StudySettings {
  uint64_t seed = 1;
  int iterations = 5000;
  // Number of jobs of each framework and family to learn from.
  int training_jobs = 150;
  // Number of invented frameworks in the training (JobPlan::invented).
  int invented = 8;
  // Number of jobs of each framework and family to judge on.
  int test_jobs = 6;
  // The family that is held out in the splits without a held-out framework.
  std::string family = "llama";
  // Names of framework groups to hold out; if empty, every group in turn.
  std::vector<std::string> hold_out{};
  // Real jobs, for testing only.
  std::vector<CallSequence> recorded{};
  // If true, also trains the control with permuted labels.
  bool control = true;
  // If true, also studies known frameworks, recorded jobs and changes of sizes.
  bool known = true;
};

// One split of training and test data.
struct StudySplit {
  // Names the data that were held out, such as "family llama", "framework megatron" or "recorded".
  std::string name;
  std::vector<StructureAccuracy> who;
  // The agreement of integers with floats on the split's test sequences.
  StructureAgreement agreement;
  double training_seconds = 0;
};

// The results of the whole study.
struct StructureStudy {
  std::vector<StudySplit> splits;
  // The changes as the network of the first split sees them.
  ChangeReport changes;
};

// Runs the study. `say` receives a line before each step that takes long.
Result<StructureStudy> StudyStructure(const StudySettings& settings,
                                      const std::function<void(const std::string&)>& say);

// The tables for standard output, and the JSON that `eval --structure` reads.
std::string FormatTables(const StructureStudy& study);
std::string FormatJson(const StructureStudy& study);

}  // namespace dynamiccl::agents
