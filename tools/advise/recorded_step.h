// SPDX-License-Identifier: Apache-2.0
// The training step that a trace repeats: its calls, its duration, and the duration of its collectives.
#pragma once

#include <cstdint>
#include <vector>

#include "src/simulator/timed_cell.h"
#include "traces/format/trace.h"
#include "traces/generators/operation_list.h"

namespace dynamiccl {

// One step, as most steps of the trace are. Times are nanoseconds.
struct RecordedStep {
  int ranks = 0;
  int ranks_per_node = 1;
  // Ranks of a communicator that gathers or scatters among fewer than all ranks; 0: there is none.
  int shard_ranks = 0;
  // Operations of the first section's rank. A communicator of all ranks is Axis::kData; a smaller one that
  // gathers or scatters is kShard, any other kReplicate.
  std::vector<WireOperation> operations;
  // Calls of all steps between two ranks, all-to-all among them (SendRecv): they are no part of a step here.
  size_t between_two = 0;
  // By operation, since the step's first one; medians over the steps.
  std::vector<int64_t> issued_ns;
  // Median time from one step's first call to the next step's; 0: not known.
  int64_t step_ns = 0;
  // (90th - 10th percentile) / median of the step times.
  double spread = 0;
  // Number of steps with exactly these operations.
  size_t steps = 0;
  // True: the program marked where steps begin. False: a repeated sequence was found.
  bool marked = false;
  // The program labelled the purpose of its calls.
  bool labelled = false;
  // The labelled stage.
  ZeroStage stage = ZeroStage::kUnknown;
  // Median times of collectives, from the last rank's start to the end.
  std::vector<TimedCell> times;
};

// Finds the sequence of operations that most steps have. A trace without marked steps is searched for the
// shortest sequence that its end repeats; without one, the whole trace is one step of unknown length. It is
// an error (kInvalidArgument) when the trace has no collectives.
Result<RecordedStep> StepOf(const Trace& trace);

// Puts `ranks_per_node` neighbours on each node. Recorders that NCCL does not ask to tune see no nodes, so
// their communicators claim to have one. Groups that share states are taken for neighbours; any other group
// has a rank on each node.
void SpreadOver(int ranks_per_node, RecordedStep& step);

}  // namespace dynamiccl
