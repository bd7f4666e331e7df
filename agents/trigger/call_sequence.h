// SPDX-License-Identifier: Apache-2.0
// Labelled calls of one communicator: what the trigger agent is trained and judged on. From traces, from the
// generator, and from either by rescaling.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/collective/collective_call.h"
#include "traces/format/trace.h"

namespace dynamiccl::agents {

struct CallSequence {
  std::string name;  // file and communicator, or the generator's parameters
  std::vector<IssuedCall> calls;
};

// Every communicator of the trace once, as its lowest recorded rank saw it, in program order. Communicators
// without one labelled call are left out.
std::vector<CallSequence> SequencesOf(const Trace& trace, const std::string& name);

// `count` runs of the generator over random widths, depths, worlds, buckets and variants, all four stages
// equally often.
std::vector<CallSequence> GenerateSequences(int count, std::mt19937_64& random);

// The same program with another hidden width, world and types: sizes above the scalars times one factor from
// 1/16 to 64, another number of ranks, at times another element size. Order and labels stay.
CallSequence Rescale(CallSequence scaled, std::mt19937_64& random);

// At most `length` calls from call `begin` on.
CallSequence Window(const CallSequence& sequence, size_t begin, size_t length);

}  // namespace dynamiccl::agents
