// SPDX-License-Identifier: Apache-2.0
// Runs of frameworks that do not exist, to learn from beside those that do: a network that knows eleven
// frameworks by their own patterns has no answer for a twelfth; one that has met each role in many an order,
// size and collective has more of one (domain randomisation: Tobin et al., IROS 2017).
#pragma once

#include "agents/trigger/invented_habits.h"
#include "traces/generators/framework_generator.h"

namespace dynamiccl::agents {

inline constexpr std::string_view kInvented = "invented";

// Labelled operations of a job with these habits; `framework` of the run is kInvented, and its stage
// StageToTell.
GeneratedRun InventedRun(const ModelShape& model, const InventedHabits& habits, int steps);

}  // namespace dynamiccl::agents
