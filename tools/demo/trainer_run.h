// SPDX-License-Identifier: Apache-2.0
// One run of the ZeRO trainer under the demo's launcher, with its calls recorded.
#pragma once

#include <string>
#include <vector>

#include "tools/demo/demo_session.h"

namespace dynamiccl {

// A model to train and the runtime under which to train it.
struct TrainerRun {
  int stage = 0;
  TrainingShape shape;
  int steps = 0;
  // Names the files of the run: LABEL.ctrace and logs/LABEL.jsonl.
  std::string label;
  // Mode, policy and rules. RunTrainer fills in topology, trace and hostccl.
  RuntimeOptions runtime{};
  // Topology and number of ranks, where they are not the plan's.
  std::string topology{};
  int n_ranks = 0;
  // Further variables of the ranks.
  EnvironmentChanges environment{};
};

// The trainer's report, one entry for each step.
struct TrainedSteps {
  std::vector<double> loss;
  // The exact loss as hexadecimal text.
  std::vector<std::string> loss_bits;
  std::vector<double> step_ms;
  // Digest of the parameters after the last step.
  std::string parameters_sha256;
};

// Path of the trace of the run with this label.
std::string TracePath(const DemoSession& session, const std::string& label);

// Trains and records. An error when the job fails or reports no step.
Result<TrainedSteps> RunTrainer(DemoSession& session, const TrainerRun& run);

// Reads the JSON lines that dynamiccl-zero writes with --json.
Result<TrainedSteps> ReadTrainedSteps(const std::string& path);

}  // namespace dynamiccl
