// SPDX-License-Identifier: Apache-2.0
// One run of the ZeRO trainer under the demo's launcher, with its calls recorded.
#pragma once

#include <string>
#include <vector>

#include "tools/demo/demo_session.h"

namespace dynamiccl {

// Holds what one run of the trainer needs: the model and batch, the ZeRO stage, and how DynamICCL is loaded.
struct TrainerRun {
  int stage = 0;
  TrainingShape shape;
  int steps = 0;
  // Label of the run. Its trace is LABEL.ctrace, its log logs/LABEL.jsonl.
  std::string label;
  // Mode, policy and rules of DynamICCL. RunTrainer adds topology, trace and hostccl.
  RuntimeOptions runtime{};
  // Topology and number of ranks, if they differ from those of the demo's plan.
  std::string topology{};
  int n_ranks = 0;
  // Further environment variables of the ranks.
  EnvironmentChanges environment{};
};

// Holds what the trainer reported. Vectors have one entry for each training step.
struct TrainedSteps {
  std::vector<double> loss;
  // The exact loss of each step as hexadecimal text.
  std::vector<std::string> loss_bits;
  std::vector<double> step_ms;
  // SHA-256 of the model's parameters after the last step.
  std::string parameters_sha256;
};

// Path of the trace of the run with this label.
std::string TracePath(const DemoSession& session, const std::string& label);

// Trains a model and records the calls. It is an error when the job fails or reports no step.
Result<TrainedSteps> RunTrainer(DemoSession& session, const TrainerRun& run);

// Reads the JSON lines that dynamiccl-zero writes with --json.
Result<TrainedSteps> ReadTrainedSteps(const std::string& path);

}  // namespace dynamiccl
