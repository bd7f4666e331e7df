// SPDX-License-Identifier: Apache-2.0
// Lets NCCL's configs take turns within one run of the job, as `dynamiccl ab` does. Comparing different runs
// would not work: the machine changes more from one run to the next than most configs change a step. Only
// configs that are faster within the run are tried further.
#pragma once

#include <string>

#include "src/base/status.h"
#include "tools/ab/turn_comparison.h"
#include "tools/tune/candidates.h"

namespace dynamiccl {

// Keeps the first configs of the list: as many as can be compared within `turns` turns. Notes in the list how
// many configs were left out.
void CutToTurns(size_t turns, CandidateList& list);
// Returns the names of the settings that take turns: the job as it is, then the configs.
std::vector<std::string> SettingsInTurn(const CandidateList& list);
// Returns the names of the configs whose whole 95 % interval lies below the step time of the unchanged job.
// There are at most two, the fastest first.
std::vector<std::string> FasterInTurns(const TurnComparison& comparison);
// Keeps the configs that `faster` names, and notes how many others there were.
void KeepFaster(const std::vector<std::string>& faster, CandidateList& list);

}  // namespace dynamiccl
