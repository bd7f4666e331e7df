// SPDX-License-Identifier: Apache-2.0
// The parts of an answer. Each function returns the sentences of one part; it returns none if the files say
// nothing about it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/policy/policy.h"
#include "tools/advise/recorded_step.h"
#include "tools/report/trace_summary.h"
#include "tools/why/read_files.h"
#include "tools/why/time_account.h"

namespace dynamiccl {

// Counts over the calls of all ranks.
struct CallTally {
  // Calls for which NCCL chooses an algorithm: collectives of at least two ranks. The trace does not say for
  // `without_algorithm` of them which one NCCL chose. If the files are NCCL's logs, these two are of the
  // first rank: a log has the choices of one rank, and they are equal on all.
  uint64_t chosen = 0;
  uint64_t without_algorithm = 0;
  // Calls of collectives, of any number of ranks.
  uint64_t collectives = 0;
  // Calls of sends and receives without a time, by collective, with their bytes and those of all calls.
  std::map<Collective, size_t> untimed_between_two;
  double untimed_bytes = 0;
  double bytes = 0;
  // Calls of the first rank that took at least the longest time that a record can hold.
  size_t cut_times = 0;
};

// Results that several parts of the answer read. They are computed once.
struct WhyFacts {
  TraceSummary summary;
  CallTally tally;
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
// Reads the records of the input in several passes and holds none of them in memory. With a null `policy`
// nothing is recognised. An error means that a file changed while it was read.
Result<WhyFacts> FactsOf(const WhyInput& input, const Policy* policy);

// Says what kind of job it is, how many ranks it has, and what a step consists of.
std::vector<std::string> JobLines(const WhyInput& input, const WhyFacts& facts);
// Says how long a step takes and on what the time is spent.
std::vector<std::string> TimeLines(const WhyInput& input, const WhyFacts& facts);
// Says what NCCL chose, and whether a sweep measured something faster.
std::vector<std::string> ChoiceLines(const WhyInput& input, const WhyFacts& facts);
// Holds what TroubleOf found to be wrong with a job.
struct Trouble {
  std::vector<std::string> lines;
  // HangDiagnosis::unmatched; empty if the ranks' calls were not compared.
  std::vector<int32_t> unmatched;
};
// Names calls that differ between ranks, and the rank for which a job that stood still was waiting.
// Reads the newest records of each rank into memory if the job may have stood still.
Result<Trouble> TroubleOf(const WhyInput& input);
// Names at most three changes of the job that are predicted to shorten a step.
std::vector<std::string> ChangeLines(const WhyInput& input, const WhyFacts& facts);
// Names each question that the files leave open, with the kind of file that would answer it.
std::vector<std::string> MissingLines(const WhyInput& input, const WhyFacts& facts, const Trouble& trouble);
// Says which command to type next. `trouble` and `changes` say whether TroubleOf and ChangeLines found
// something.
std::vector<std::string> NextLines(const WhyInput& input, bool trouble, bool changes);

}  // namespace dynamiccl
