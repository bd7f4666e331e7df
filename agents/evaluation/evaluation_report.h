// SPDX-License-Identifier: Apache-2.0
// The result of an evaluation, as tables for people and as JSON for reports.
#pragma once

#include <string>
#include <vector>

#include "agents/evaluation/regret.h"
#include "agents/evaluation/structure_accuracy.h"

namespace dynamiccl::agents {

// Everything that `eval` judged. A list is empty when its inputs were not given.
struct Evaluation {
  std::string policy_sha256;
  std::vector<RegretSummary> regrets;
  std::vector<StructureAccuracy> structures;
};

// The evaluation as tables for standard output.
std::string FormatTables(const Evaluation& evaluation);
// Returns {"policy_sha256", "config": [{...}], "structure": [{...}]}, with the number of the JSON's schema.
std::string FormatJson(const Evaluation& evaluation);

}  // namespace dynamiccl::agents
