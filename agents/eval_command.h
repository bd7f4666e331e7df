// SPDX-License-Identifier: Apache-2.0
// `dynamiccl-agents eval`: measures how good a policy is on traces and sweeps, compared with the library's
// own choice.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agents/evaluation/regret.h"
#include "src/base/status.h"
#include "src/policy/policy.h"

namespace dynamiccl::agents {

// The options of the command, as main.cc parses them.
struct EvalSettings {
  // Policy files. Several files are policies of the same training with different seeds, from which intervals
  // over seeds are computed.
  std::vector<std::string> policies;
  // Labelled traces on which the structure agent is judged.
  std::vector<std::string> traces;
  // Sweeps on which the config agent is judged.
  std::vector<std::string> measurements;
  // Sweeps that the training read but `measurements` does not contain. If there are any, everything in
  // `measurements` counts as a held-out topology.
  std::vector<std::string> trained_on;
  // Destination of the result as JSON: a path, "-" for standard output, empty for none.
  std::string json;
};

using Policies = std::vector<std::unique_ptr<const Policy>>;
// Reads policy files. An empty list is an error with a hint.
Result<Policies> ReadPolicies(const std::vector<std::string>& paths);

// Creates the choosers that are judged on the keys of the sweeps. `seen` holds the keys of the training,
// `judged` those of EvalSettings::measurements; both must outlive the choosers.
using ChooserMaker = std::function<std::vector<Chooser>(
    const Policies& policies, const std::vector<SweptKey>& seen, const std::vector<SweptKey>& judged)>;

// Runs the command. Prints tables to standard output, or only the JSON if `json` is "-". An unreadable input,
// or one with nothing to judge, is an error with a hint.
Status EvaluateBeside(const ChooserMaker& choosers, const EvalSettings& settings);
// EvaluateBeside with two choosers for comparison: the library's default, and the best choice in the sweep
// that the training used.
Status Evaluate(const EvalSettings& settings);

}  // namespace dynamiccl::agents
