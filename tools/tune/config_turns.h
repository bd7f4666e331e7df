// SPDX-License-Identifier: Apache-2.0
// Lets NCCL's configs take turns within one start of the job, as `dynamiccl ab` does. Comparing different
// starts would not work: the machine changes more from one start to the next than most configs change a step.
// Configs that seem faster but are not surely so take turns once more. Fewer configs then share the start, so
// each gets more turns. Only configs that are surely faster are tried further.
#pragma once

#include <string>

#include "src/base/status.h"
#include "tools/ab/turn_comparison.h"
#include "tools/tune/candidates.h"
#include "tools/tune/tune_journal.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {

// Keeps the first configs of the list: as many as can be compared within `turns` turns. Notes in the list how
// many configs were left out.
void CutToTurns(size_t turns, CandidateList& list);
// Returns the names of the settings that take turns: the job as it is, then the configs.
std::vector<std::string> SettingsInTurn(const CandidateList& list);
// What the turns of one start say about the configs, the fastest first.
struct TurnVerdicts {
  // At most two configs whose whole 95 % interval lies below the step time of the unchanged job.
  std::vector<std::string> faster;
  // At most two configs that may be faster than all of `faster`. They seem to gain at least 2 %, but their
  // interval does not show it yet.
  std::vector<std::string> open;
};
TurnVerdicts JudgeConfigs(const TurnComparison& comparison);
// Writes into `start`, a start in which the settings `names` took turns, what its calls say about the
// configs, or why they say nothing.
void JudgeTurns(const SectionCalls& calls, const std::vector<std::string>& names, JobStart& start);

// Writes and reads verdicts as the words of JobStart::seen. The name of an open config ends in "?".
std::string TextOf(const TurnVerdicts& verdicts);
TurnVerdicts VerdictsIn(const std::string& text);

// Removes all configs from the list but those with these names.
void KeepConfigs(const std::vector<std::string>& names, CandidateList& list);

}  // namespace dynamiccl
