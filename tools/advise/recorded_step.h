// SPDX-License-Identifier: Apache-2.0
// The training step that a trace repeats: its calls, how long it took, and how long its collectives took.
#pragma once

#include <cstdint>
#include <vector>

#include "src/simulator/timed_cell.h"
#include "traces/format/trace.h"
#include "traces/generators/operation_list.h"

namespace dynamiccl {

struct RecordedStep {
  int ranks = 0;
  int ranks_per_node = 1;
  int shard_ranks = 0;  // of a communicator that gathers or scatters among fewer than all; 0: there is none
  // Of the first section's rank. A communicator of all ranks is Axis::kData; a smaller one that gathers or
  // scatters is kShard, any other kReplicate.
  std::vector<WireOperation> operations;
  std::vector<int64_t> issued_ns;  // by operation, from the step's first one; medians over the steps
  int64_t step_ns = 0;             // median from one step's first call to the next one's; 0: not known
  double spread = 0;               // of the steps: (90th - 10th percentile) / median
  size_t steps = 0;                // that issue exactly these operations
  bool marked = false;             // the program said where steps begin; else a repeated sequence was found
  bool labelled = false;           // the program said what its calls are for
  ZeroStage stage = ZeroStage::kUnknown;  // as it said
  std::vector<TimedCell> times;           // of collectives, from the last rank's start to the end; medians
};

// The sequence of operations that most steps have. A trace that marks no steps is searched for the shortest
// sequence that its end repeats; without any, all of it is one step of unknown length.
// kInvalidArgument: no collectives.
Result<RecordedStep> StepOf(const Trace& trace);

// Recorders that are not asked to tune do not see nodes: their communicators have one. Puts so many
// neighbours on each. Groups that share states are neighbours, any others have a rank on each node.
void SpreadOver(int ranks_per_node, RecordedStep& step);

}  // namespace dynamiccl
