// SPDX-License-Identifier: Apache-2.0
// What the structure trigger agent recognises in jobs unlike those that it learnt from, beside simpler ways:
// known frameworks on a model family never seen, each framework never seen, recorded jobs, and changes of a
// job's sizes. Trains once for each split.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "agents/evaluation/structure_accuracy.h"
#include "agents/evaluation/structure_changes.h"
#include "agents/trigger/trigger_export.h"
#include "agents/trigger/trigger_training.h"
#include "src/base/status.h"

namespace dynamiccl::agents {

struct StudySettings {
  uint64_t seed = 1;
  int iterations = 5000;
  int training_jobs = 150;  // of each framework and family
  int invented = 8;         // JobPlan::invented, in training
  int test_jobs = 6;
  std::string family = "llama";          // held out where frameworks are known
  std::vector<std::string> hold_out{};   // names of framework groups; empty: every one in turn
  std::vector<CallSequence> recorded{};  // real jobs, for testing only
  bool control = true;                   // permuted labels too
  bool known = true;                     // known frameworks, recorded jobs and changes of sizes too
};

struct StudySplit {
  std::string name;  // "family llama", "framework megatron", "recorded"
  std::vector<StructureAccuracy> who;
  // Of integers with floats, on the split's test sequences.
  TriggerAgreement agreement;
  double training_seconds = 0;
};

struct StructureStudy {
  std::vector<StudySplit> splits;
  ChangeReport changes;  // of the network of the first split
};

// `say`: one line about each thing that takes long.
Result<StructureStudy> StudyStructure(const StudySettings& settings,
                                      const std::function<void(const std::string&)>& say);

std::string FormatTables(const StructureStudy& study);
std::string FormatJson(const StructureStudy& study);

}  // namespace dynamiccl::agents
