// SPDX-License-Identifier: Apache-2.0
// The parts of an answer. Each function returns the part's sentences; none: the files say nothing about it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/policy/policy.h"
#include "tools/advise/recorded_step.h"
#include "tools/why/read_files.h"
#include "tools/why/time_account.h"

namespace dynamiccl {

// What several parts look at; computed once.
struct WhyFacts {
  // The step that the trace repeats; nothing where no step is known to repeat.
  std::optional<RecordedStep> step;
  TimeAccount times;
  // The stage that a policy's LSTM takes the unlabelled job for, and in which share of the first rank's
  // calls; kUnknown where no stage has most of them.
  ZeroStage recognised = ZeroStage::kUnknown;
  double recognised_share = 0;
};
// `policy` may be null: nothing is recognised then.
WhyFacts FactsOf(const WhyInput& input, const Policy* policy);

// Ranks of the job, as far as the trace names them.
int RanksOf(const Trace& trace);

// What the job is.
std::vector<std::string> JobLines(const WhyInput& input, const WhyFacts& facts);
// Where its time goes.
std::vector<std::string> TimeLines(const WhyInput& input, const WhyFacts& facts);
// What NCCL chose, and whether something else was measured to be faster.
std::vector<std::string> ChoiceLines(const WhyInput& input);
// What ranks did differently, and whether the job stood still.
std::vector<std::string> TroubleLines(const WhyInput& input);
// At most three changes that shorten a step by a prediction.
std::vector<std::string> ChangeLines(const WhyFacts& facts);
// What the files do not show, and which would.
std::vector<std::string> MissingLines(const WhyInput& input, const WhyFacts& facts);
// The next command. `trouble` and `changes`: whether those parts say something.
std::vector<std::string> NextLines(const WhyInput& input, bool trouble, bool changes);

}  // namespace dynamiccl
