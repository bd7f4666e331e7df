// SPDX-License-Identifier: Apache-2.0
// Jobs that were recorded, not generated, with labels derived from what is known about them. They serve for
// testing only.
#pragma once

#include <string>
#include <vector>

#include "agents/structure/call_sequence.h"
#include "src/base/status.h"
#include "traces/format/trace.h"

namespace dynamiccl::agents {

// PyTorch and DeepSpeed on two ranks, as recorded in traces/samples/wire_sequences: one step of each,
// repeated eight times. The calls come from the generators, which golden_sequences_test compares with the
// recordings call by call.
std::vector<CallSequence> WireSequences();

// A trace of a job, made by `dynamiccl record` or imported from another tool by `dynamiccl trace import`,
// with the facts that the trace does not state.
struct KnownJob {
  std::string path;
  ZeroStage stage = ZeroStage::kUnknown;
  // Ranks of the communicators on which activations are exchanged; 0 if there are none.
  int tensor_ranks = 0;
};
// Parses "stage3=L7B.ctrace" or "stage1/8=G13B.ctrace" (8 tensor-parallel ranks).
Result<KnownJob> ParseKnownJob(const std::string& text);

// Labels each communicator of the trace by these rules. A call that reduces more than a scalar handles
// gradients. An AllGather handles parameters before their use in stage 3, and in the other stages the
// parameters after the optimizer step. Broadcasts are "other". Among the tensor-parallel ranks, everything
// except scalars and broadcasts is activations. Data types that a trace of AICB does not state are taken as
// float16. If a trace has a single step, that step is repeated until there are four.
std::vector<CallSequence> LabelKnownJob(const Trace& trace, const KnownJob& job);
// Reads and labels the job's trace.
Result<std::vector<CallSequence>> ReadKnownJob(const KnownJob& job);

}  // namespace dynamiccl::agents
