// SPDX-License-Identifier: Apache-2.0
// The training step that a trace repeats: its calls, its duration, and the duration of its collectives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/simulator/timed_cell.h"
#include "traces/format/trace.h"
#include "traces/format/trace_calls.h"
#include "traces/generators/operation_list.h"

namespace dynamiccl {

// The most frequent step of a trace. Times are nanoseconds.
struct RecordedStep {
  int ranks = 0;
  int ranks_per_node = 1;
  // Number of ranks of the smaller communicators that gather or scatter; 0: all gathers and scatters run on
  // all ranks.
  int shard_ranks = 0;
  // Operations of the first section's rank. A communicator of all ranks is Axis::kData; a smaller one that
  // gathers or scatters is kShard, any other kReplicate.
  std::vector<WireOperation> operations;
  // Number of calls between two ranks in all steps, including those of an all-to-all (SendRecv). Such calls
  // are not counted as part of a step.
  size_t between_two = 0;
  // For each operation the time of issue since the step's first one, as the median over the steps.
  std::vector<int64_t> issued_ns;
  // Median time from one step's first call to the next step's; 0: not known.
  int64_t step_ns = 0;
  // Number of step times of which step_ns is the median. The first steps of a long trace and the last step
  // have no time.
  size_t timed_steps = 0;
  // (90th - 10th percentile) / median of the step times.
  double spread = 0;
  // Number of steps with exactly these operations.
  size_t steps = 0;
  // True: the program marked where steps begin. False: a repeated sequence was found.
  bool marked = false;
  // True: a step is assumed to be one call, because the last calls are all equal and come at one pace. Equal
  // layers that communicate in turn look the same.
  bool paced = false;
  // The program labelled the purpose of its calls.
  bool labelled = false;
  // The ZeRO stage that the program labelled, or that was recognised.
  ZeroStage stage = ZeroStage::kUnknown;
  // Who recognised roles, phases and stage of a program that did not label its calls; empty: nobody.
  std::string recognised_by;
  // Median times of the collectives. A time runs from the last rank's start to the last rank's end.
  std::vector<TimedCell> times;
};

// Finds the sequence of operations that most steps have. In a trace without marked steps it searches for the
// shortest sequence that the end of the trace repeats. If only equal calls repeat, each call is a step,
// provided that the calls come at one pace. Otherwise the whole trace is one step of unknown length. It is an
// error (kInvalidArgument) when the trace has no collectives.
//
// `recognised_by` is the recogniser from which the labels of the trace come (RecogniseSections); empty: the
// program labelled its calls. Recognised roles and phases are, for each operation, those that most steps
// have.
Result<RecordedStep> StepOf(const Trace& trace, const std::string& recognised_by = "");
// Like the StepOf above, for a caller that has the calls of the trace already (`sections`, from CallsOf).
Result<RecordedStep> StepOf(const Trace& trace, const std::vector<SectionCalls>& sections,
                            const std::string& recognised_by = "");

// Median time of each (collective, ranks, nodes, bytes) over all calls of these ranks.
std::vector<TimedCell> TimesOf(const std::vector<SectionCalls>& sections);

// Places the ranks on nodes, `ranks_per_node` neighbouring ranks on each. This is needed because a recorder
// does not know the nodes if NCCL asks no tuner; its communicators then claim to have one node. A
// communicator that shards states is assumed to connect neighbouring ranks. Any other communicator of fewer
// than all ranks is assumed to have one rank on each node.
void SpreadOver(int ranks_per_node, RecordedStep& step);

}  // namespace dynamiccl
