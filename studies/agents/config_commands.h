// SPDX-License-Identifier: Apache-2.0
// The commands of `dynamiccl-lab-agents` about the choice of configs: `baselines`, `scenarios`, `hypotheses`.
#pragma once

#include <string>
#include <vector>

#include "agents/eval_command.h"
#include "src/base/status.h"

namespace dynamiccl::agents {

// Judges as `dynamiccl eval` does, and also judges all baselines of baselines/, which it trains or runs.
Status JudgeBesideBaselines(const EvalSettings& settings);

// Prints at which sizes protocols change, and what follows when sizes change, for the first policy
// (scenarios.h).
Status PrintScenarios(const EvalSettings& settings);

struct HypothesesSettings {
  std::vector<std::string> measurements;
  std::string structure_json;  // what `dynamiccl-lab-agents structure --json` wrote; may be empty
};
// Prints as Markdown what sweeps say about common beliefs on collectives (hypotheses.h).
Status PrintHypotheses(const HypothesesSettings& settings);

}  // namespace dynamiccl::agents
