// SPDX-License-Identifier: Apache-2.0
// NCCL's configs take turns within one start of the job, as under `dynamiccl ab`: the machine changes more
// from one start to the next than most configs change a step. Only those that are faster there are tried
// further.
#pragma once

#include <string>

#include "src/base/status.h"
#include "tools/ab/turn_comparison.h"
#include "tools/tune/candidates.h"

namespace dynamiccl {

// Steps of one turn, of which the first does not count.
inline constexpr uint32_t kStepsOfTurn = 2;

// Leaves the likeliest configs that a start of `steps` steps can tell apart, and notes those it leaves out.
void CutToSteps(size_t steps, CandidateList& list);
// The names of the settings that take turns: the job as it is, then the configs.
std::vector<std::string> SettingsInTurn(const CandidateList& list);
// Writes the rules of each config into `folder` and returns the value of DYNAMICCL_RULES_IN_TURN.
Result<std::string> RulesInTurn(const CandidateList& list, const std::string& folder);
// The configs whose whole interval lies below the job's own step, at most two, the fastest first.
std::vector<std::string> FasterInTurns(const TurnComparison& comparison);
// Keeps the configs named in `faster`, and notes how many others there were.
void KeepFaster(const std::vector<std::string>& faster, CandidateList& list);

}  // namespace dynamiccl
