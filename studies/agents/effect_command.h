// SPDX-License-Identifier: Apache-2.0
// `dynamiccl-lab-agents effects`: judges predictions of the effects of configs on training steps.
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"
#include "studies/agents/effects/effect_study.h"

namespace dynamiccl::agents {

// The options of the command.
struct EffectSettings {
  // Measurement files with effects on steps.
  std::vector<std::string> measurements;
  EffectTrainingSettings training;
  int seeds = 3;
};

// Trains without each fabric in turn and prints tables. Returns kInvalidArgument if the files have no
// effects.
Status StudyEffectsCommand(const EffectSettings& settings);

}  // namespace dynamiccl::agents
