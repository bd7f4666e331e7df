// SPDX-License-Identifier: Apache-2.0
// `dynamiccl-agents train`: traces and measurements in, one policy file out.
#pragma once

#include <string>
#include <vector>

#include "agents/config/swept_key.h"
#include "src/base/status.h"

namespace dynamiccl::agents {

struct TrainSettings {
  std::vector<std::string> traces;
  std::vector<std::string> measurements;
  std::string output;
  std::string from;  // a policy to go on with; its trigger agent is kept as it is
  HoldOut hold_out;
  uint64_t seed = 1;
  int trigger_iterations = 5000;
  int config_iterations = 3000;
  std::string json;  // empty: none; "-": standard output, and the talk goes to standard error
};

// Prints what it does, a line a step.
Status Train(const TrainSettings& settings);

// Reading of inputs, for evaluations too.
Result<std::vector<MeasurementFile>> ReadMeasurements(const std::vector<std::string>& paths);

}  // namespace dynamiccl::agents
