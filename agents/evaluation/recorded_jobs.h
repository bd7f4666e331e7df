// SPDX-License-Identifier: Apache-2.0
// Jobs that were recorded, not generated, with labels by what is known of them: for testing only.
#pragma once

#include <string>
#include <vector>

#include "agents/trigger/call_sequence.h"
#include "src/base/status.h"
#include "traces/format/trace.h"

namespace dynamiccl::agents {

// PyTorch and DeepSpeed on two ranks as traces/samples/wire_sequences holds them: one step of each, repeated
// eight times. The calls come from the generators, which golden_sequences_test holds to these recordings call
// by call.
std::vector<CallSequence> WireSequences();

// A trace (of `dynamiccl record`, or of another tool by `dynamiccl trace import`) of a job of which it does
// not say what it was.
struct KnownJob {
  std::string path;
  ZeroStage stage = ZeroStage::kUnknown;
  int tensor_ranks = 0;  // of the communicators on which activations are exchanged; 0: none are
};
// "stage3=L7B.ctrace", "stage1/8=G13B.ctrace" (8 tensor-parallel ranks).
Result<KnownJob> ParseKnownJob(const std::string& text);

// Each communicator of the trace. Labels: what reduces more than a scalar is of gradients, what gathers is of
// parameters (stage 3) or follows the step, broadcasts are other; among the tensor-parallel ranks all but
// scalars and broadcasts are activations. Bytes of AICB, whose types it does not tell, are taken as float16.
// A trace with one step has it four times.
std::vector<CallSequence> LabelKnownJob(const Trace& trace, const KnownJob& job);
Result<std::vector<CallSequence>> ReadKnownJob(const KnownJob& job);

}  // namespace dynamiccl::agents
