// SPDX-License-Identifier: Apache-2.0
// `dynamiccl-agents eval`: judges how good a policy is on traces and sweeps, beside simple baselines.
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"

namespace dynamiccl::agents {

// The options of the command, as main.cc parses them.
struct EvalSettings {
  // Policy files: one, or several of the same training with other seeds, which give intervals over seeds.
  std::vector<std::string> policies;
  // Labelled traces on which the trigger agent is judged.
  std::vector<std::string> traces;
  // Sweeps on which the config agent is judged.
  std::vector<std::string> measurements;
  // Sweeps of the training that are not in `measurements`. If there are any, everything in `measurements`
  // counts as a held-out topology, and the baselines learn from these.
  std::vector<std::string> trained_on;
  // Judges only the policies, the default and the best of the training's own sweep, without the slower
  // baselines.
  bool only_policies = false;
  // Prints the page of evaluation/scenarios.h for the first policy, and nothing else.
  bool scenarios = false;
  // Prints the page of evaluation/hypotheses.h, and nothing else. Needs only `measurements`.
  bool hypotheses = false;
  // Output of `structure --json`, which the page of hypotheses quotes; empty: none.
  std::string structure_json;
  // Where the result goes as JSON: a path, "-" for standard output, empty for nowhere.
  std::string json;
};

// Runs the command. Prints tables to standard output, or only the JSON if it goes there. An unreadable input,
// or one with nothing to judge, is an error with a hint.
Status Evaluate(const EvalSettings& settings);

}  // namespace dynamiccl::agents
