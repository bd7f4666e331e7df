// SPDX-License-Identifier: Apache-2.0
// The commands of `dynamiccl-lab-agents` about the choice of configs: `baselines`, `scenarios`, `hypotheses`.
#pragma once

#include <string>
#include <vector>

#include "agents/eval_command.h"
#include "src/base/status.h"

namespace dynamiccl::agents {

// `dynamiccl-agents eval` beside everybody of baselines/ too, whom it trains or lets try anew.
Status JudgeBesideBaselines(const EvalSettings& settings);

// At which sizes protocols change, and what follows when sizes change, by the first policy (scenarios.h).
Status PrintScenarios(const EvalSettings& settings);

struct HypothesesSettings {
  std::vector<std::string> measurements;
  std::string structure_json;  // what `dynamiccl-lab-agents structure --json` wrote; may be empty
};
// What sweeps say of common beliefs about collectives, as Markdown (hypotheses.h).
Status PrintHypotheses(const HypothesesSettings& settings);

}  // namespace dynamiccl::agents
