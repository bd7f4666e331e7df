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

// Keeps the likeliest configs, as many as a start with `turns` turns can tell apart, and notes how many it
// leaves out.
void CutToTurns(size_t turns, CandidateList& list);
// Returns the names of the settings that take turns: the job as it is, then the configs.
std::vector<std::string> SettingsInTurn(const CandidateList& list);
// Returns the names of the configs whose whole interval lies below the job's own step. There are at most two,
// the fastest first.
std::vector<std::string> FasterInTurns(const TurnComparison& comparison);
// Keeps the configs that `faster` names, and notes how many others there were.
void KeepFaster(const std::vector<std::string>& faster, CandidateList& list);

}  // namespace dynamiccl
