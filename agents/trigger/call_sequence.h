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
  // What splits of training and test data go by; empty where it is not known.
  std::string framework{};  // as FrameworkGenerator::name
  std::string family{};     // of the model: "gpt", "llama"
  // Indices of the first calls of the steps, in order; empty where steps are not marked. Calls before the
  // first one belong to construction.
  std::vector<size_t> step_begins{};
};

// Every communicator of the trace once, as its lowest recorded rank saw it, in program order.
std::vector<CallSequence> AllSequencesOf(const Trace& trace, const std::string& name);
// Those with a labelled call.
std::vector<CallSequence> SequencesOf(const Trace& trace, const std::string& name);

// The same program with another hidden width, world and types: sizes above the scalars times one factor from
// 1/16 to 64, another number of ranks (few, where activations are exchanged), at times another element size.
// Order and labels stay.
CallSequence Rescale(CallSequence scaled, std::mt19937_64& random);

// The program of a framework that there is not: gradients summed by another collective, parameters gathered
// by another, at times without scalars. Roles and phases stay; the stage is not told any more, since what it
// is known by may be gone.
CallSequence Reinvent(CallSequence sequence, std::mt19937_64& random);

// At most `length` calls from call `begin` on.
CallSequence Window(const CallSequence& sequence, size_t begin, size_t length);

}  // namespace dynamiccl::agents
