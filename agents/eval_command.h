// SPDX-License-Identifier: Apache-2.0
// `dynamiccl-agents eval`: how good a policy is on traces and sweeps, beside simple baselines.
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"

namespace dynamiccl::agents {

struct EvalSettings {
  std::string policy;
  std::vector<std::string> traces;
  std::vector<std::string> measurements;
  std::string json;  // path, "-" for standard output, empty for none
};

// Prints tables, or the JSON alone where it goes to standard output.
Status Evaluate(const EvalSettings& settings);

}  // namespace dynamiccl::agents
