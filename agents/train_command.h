// SPDX-License-Identifier: Apache-2.0
// `dynamiccl-agents train`: turns traces and measurements into one policy file.
#pragma once

#include <string>
#include <vector>

#include "agents/config/swept_key.h"
#include "src/base/status.h"

namespace dynamiccl::agents {

// The options of the command.
struct TrainSettings {
  // Labelled traces for the structure agent. Without traces it learns from generated sequences only.
  std::vector<std::string> traces;
  // Measurements for the config agent: sweeps, and effects on steps. There must be at least one file.
  std::vector<std::string> measurements;
  // Path of the policy file to write. Only `inputs_only` needs none.
  std::string output;
  // A policy that is trained further: its config agent on sweeps, and its structure agent if there are
  // traces. If only effects on steps are given, its predictions of times stay. Empty means training from
  // scratch, which needs sweeps.
  std::string from;
  // The part of the sweeps that training must not see, so that the policy can be judged on it afterwards.
  HoldOut hold_out;
  // Seed of all random choices. Equal seeds and inputs give equal files, in whatever order inputs are named.
  uint64_t seed = 1;
  int structure_iterations = 10000;
  int config_iterations = 3000;
  // Reads and draws what training would learn from, prints its checksums, and writes no policy.
  bool inputs_only = false;
  // Destination of the report as JSON: a path, "-" for standard output, or empty for none. With "-", progress
  // goes to standard error.
  std::string json;
};

// Trains, writes the policy and prints a line for each step. Returns kInvalidArgument if nothing is left to
// train on, and kUnsupported if the cost model can price none of the measured configurations.
Status Train(TrainSettings settings);

// Reads all files, or returns the first error. `eval` uses this function as well.
Result<std::vector<MeasurementFile>> ReadMeasurements(const std::vector<std::string>& paths);

}  // namespace dynamiccl::agents
