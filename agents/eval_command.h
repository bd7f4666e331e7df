// SPDX-License-Identifier: Apache-2.0
// `dynamiccl-agents eval`: how good a policy is on traces and sweeps, beside simple baselines.
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"

namespace dynamiccl::agents {

struct EvalSettings {
  std::vector<std::string> policies;  // one, or several of other seeds of the same training
  std::vector<std::string> traces;
  std::vector<std::string> measurements;
  std::vector<std::string> trained_on;  // sweeps of the training that are not in `measurements`
  bool only_policies = false;           // beside the default alone
  bool scenarios = false;               // prints those of evaluation/scenarios.h instead, of the first policy
  bool hypotheses = false;              // prints that page instead; needs `measurements` only
  std::string structure_json;           // of the structure study, for that page
  std::string json;                     // path, "-" for standard output, empty for none
};

// Prints tables, or the JSON alone where it goes to standard output.
Status Evaluate(const EvalSettings& settings);

}  // namespace dynamiccl::agents
