// SPDX-License-Identifier: Apache-2.0
// The training step that a trace repeats: its calls, its duration, and the duration of its collectives.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/simulator/timed_cell.h"
#include "tools/advise/step_search.h"
#include "tools/report/section_scan.h"
#include "traces/format/record_source.h"
#include "traces/format/trace.h"
#include "traces/generators/operation_list.h"

namespace dynamiccl {

// The most frequent step of a trace. Times are nanoseconds.
struct RecordedStep {
  int ranks = 0;
  int ranks_per_node = 1;
  // Number of ranks of the smaller communicators that gather or scatter; 0: all gathers and scatters run on
  // all ranks.
  int shard_ranks = 0;
  // Operations of the rank that the trace's first section records. A communicator of all ranks is
  // Axis::kData. A smaller one is Axis::kShard if it gathers or scatters, else Axis::kReplicate.
  std::vector<WireOperation> operations;
  // Number of calls that consist of sends and receives, such as AlltoAll, in all steps, by collective. These
  // calls are not among `operations`.
  std::map<Collective, size_t> between_two;
  // The share of these calls in the bytes of all calls, 0 to 1.
  double between_two_share = 0;
  // Time of issue of each operation in nanoseconds after the step's first operation, as the median over the
  // steps.
  std::vector<int64_t> issued_ns;
  // Median time from the first call of one step to the first call of the next, in nanoseconds; 0: not known.
  int64_t step_ns = 0;
  // Number of step times of which step_ns is the median. The first two steps of a long trace are not timed,
  // and the last step has no end.
  size_t timed_steps = 0;
  // Spread of the step times: (90th percentile - 10th percentile) / median.
  double spread = 0;
  // Number of steps in the trace that have exactly these operations.
  size_t steps = 0;
  // True: the program marked where steps begin. False: steps were found as a sequence of calls that repeats.
  bool marked = false;
  // True: each call is taken for a step, because the last calls are all equal and the pauses between them are
  // nearly equal. Equal layers of one step that communicate one after the other look the same.
  bool paced = false;
  // True: the program labelled the role and phase of its calls.
  bool labelled = false;
  // The ZeRO stage of the step, labelled by the program or recognised by a policy's LSTM.
  ZeroStage stage = ZeroStage::kUnknown;
  // Name of the policy whose LSTM recognised roles, phases and stage; empty: nothing was recognised.
  std::string recognised_by;
  // Number of AllReduces of int32 numbers in the whole trace, by their number of elements. Nothing if records
  // are missing.
  std::optional<std::map<int64_t, size_t>> int32_reduces;
  // Median times of the collectives. The time of a collective runs from the last rank's start to the last
  // rank's end.
  std::vector<TimedCell> times;
};

// The sum of the counts of RecordedStep::between_two.
size_t CallsIn(const std::map<Collective, size_t>& counts);
// Returns the counts as text, for example "12 AlltoAll, 4 Send".
std::string CallsText(const std::map<Collective, size_t>& counts);

// Finds the sequence of operations that most steps have. In a trace without marked steps, StepOf searches for
// the shortest sequence that the end of the trace repeats. If all calls at the end are equal and come at
// nearly equal intervals, each call is a step. Otherwise the whole trace is one step of unknown length. It is
// an error (kInvalidArgument) when the trace has no collectives, or when a step would have more than
// kLongestStep calls.
//
// `recognised_by` names the recogniser that set the labels of the trace (RecogniseSections); empty: the
// program labelled its calls. Each operation gets the recognised role and phase that most steps have for it.
Result<RecordedStep> StepOf(const Trace& trace, const std::string& recognised_by = "");
// Like the StepOf above, but reads `records` in several passes and holds none of them in memory. `sections`
// comes from ScanSections with all sections described, and `search` must have taken all calls of the first
// section.
Result<RecordedStep> StepOf(const RecordSource& records, const std::vector<SectionScan>& sections,
                            const StepSearch& search, const std::string& recognised_by = "");

// Assigns the ranks to nodes, `ranks_per_node` neighbouring ranks to each. A recorder learns the nodes only
// when NCCL asks a tuner; otherwise its communicators claim to have one node. A communicator that shards
// model states is assumed to connect neighbouring ranks. Any other communicator of fewer than all ranks is
// assumed to have one rank on each node.
void SpreadOver(int ranks_per_node, RecordedStep& step);

}  // namespace dynamiccl
