// SPDX-License-Identifier: Apache-2.0
// The parts of an answer. Each function returns the sentences of one part; it returns none if the files say
// nothing about it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/policy/policy.h"
#include "tools/advise/recorded_step.h"
#include "tools/report/trace_summary.h"
#include "tools/why/read_files.h"
#include "tools/why/time_account.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {

// Results that several parts of the answer read. They are computed once.
struct WhyFacts {
  // The calls of the trace's sections, in their order; empty without a trace.
  std::vector<SectionCalls> sections;
  TraceSummary summary;
  // Ranks of the job, as far as the trace names them.
  int ranks = 0;
  // The step that the trace repeats; nothing where no step is known to repeat.
  std::optional<RecordedStep> step;
  // Number of calls at the trace's end that are equal and issued at regular intervals (RecordedStep::paced);
  // 0: none.
  size_t paced = 0;
  TimeAccount times;
  // The stage that a policy's LSTM recognised in a job without labels, and the share of the first rank's
  // calls for which it did. kUnknown where no stage has most of the calls.
  ZeroStage recognised = ZeroStage::kUnknown;
  double recognised_share = 0;
};
// With a null `policy` nothing is recognised.
WhyFacts FactsOf(const WhyInput& input, const Policy* policy);

// Says what kind of job it is, how many ranks it has, and what a step consists of.
std::vector<std::string> JobLines(const WhyInput& input, const WhyFacts& facts);
// Says how long a step takes and on what the time is spent.
std::vector<std::string> TimeLines(const WhyInput& input, const WhyFacts& facts);
// Says what NCCL chose, and whether a sweep measured something faster.
std::vector<std::string> ChoiceLines(const WhyInput& input, const WhyFacts& facts);
// Names calls that differ between ranks, and the rank for which a job that stood still was waiting.
std::vector<std::string> TroubleLines(const WhyInput& input);
// Names at most three changes of the job that are predicted to shorten a step.
std::vector<std::string> ChangeLines(const WhyInput& input, const WhyFacts& facts);
// Names each question that the files leave open, with the kind of file that would answer it.
std::vector<std::string> MissingLines(const WhyInput& input, const WhyFacts& facts);
// Says which command to type next. `trouble` and `changes` say whether TroubleLines and ChangeLines found
// something.
std::vector<std::string> NextLines(const WhyInput& input, bool trouble, bool changes);

}  // namespace dynamiccl
