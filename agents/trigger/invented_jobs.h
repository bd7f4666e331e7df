// SPDX-License-Identifier: Apache-2.0
// Runs of frameworks that do not exist, to learn from besides those that do. A network that knows eleven
// frameworks by their own patterns has no answer for a twelfth. One that has met each role in many orders,
// sizes and collectives generalises better (domain randomisation: Tobin et al., IROS 2017).
#pragma once

#include "agents/trigger/invented_habits.h"
#include "traces/generators/framework_generator.h"

namespace dynamiccl::agents {

// The name of all invented frameworks in runs and sequences.
inline constexpr std::string_view kInvented = "invented";

// The labelled operations of a job with these habits: construction and `steps` steps. The run's framework is
// kInvented, and its stage StageToTell(habits).
GeneratedRun InventedRun(const ModelShape& model, const InventedHabits& habits, int steps);

}  // namespace dynamiccl::agents
