// SPDX-License-Identifier: Apache-2.0
// `dynamiccl-lab-agents states`: what the structure agent of a finished policy recognises in generated jobs,
// and after how many calls of a repeated step its LSTM is in an earlier state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/status.h"

namespace dynamiccl::agents {

// The options of the command.
struct StatesSettings {
  // The policy files. Each is judged on the same jobs.
  std::vector<std::string> policies;
  // Number of random jobs of each framework and model family, and the seed with which they are drawn.
  int jobs = 4;
  uint64_t seed = 1000;
};

// Judges the policies and prints a table.
Status PrintStates(const StatesSettings& settings);

}  // namespace dynamiccl::agents
