// SPDX-License-Identifier: Apache-2.0
// Labelled calls of one communicator: what the structure agent is trained and judged on. Sequences come from
// traces and from generators, and either kind can be varied by rescaling and reinventing.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/collective/collective_call.h"
#include "traces/format/trace.h"

namespace dynamiccl::agents {

// The calls of one communicator in program order.
struct CallSequence {
  // File and communicator, or the generator's parameters; for messages.
  std::string name;
  std::vector<IssuedCall> calls;
  // Training and test data are split by framework and family; both are empty if unknown. As
  // FrameworkGenerator::name.
  std::string framework{};
  // The model's family, for example "gpt" or "llama".
  std::string family{};
  // Index of the first call of each step, ascending; empty if steps are not marked. Calls before the first
  // entry belong to construction.
  std::vector<size_t> step_begins{};
};

// Every communicator of the trace once, as its lowest recorded rank saw it, in program order.
std::vector<CallSequence> AllSequencesOf(const Trace& trace, const std::string& name);
// The sequences of AllSequencesOf that have at least one labelled call.
std::vector<CallSequence> SequencesOf(const Trace& trace, const std::string& name);

// The same program with another hidden width, world and data type. Sizes above those of scalars are
// multiplied by one factor from 1/16 to 64. The number of ranks changes (it stays small where activations are
// exchanged), and sometimes the element size. Order and labels stay.
CallSequence Rescale(CallSequence scaled, std::mt19937_64& random);

// The program of a framework that does not exist: gradients are summed by another collective, parameters
// gathered by another, sometimes without scalars. Roles and phases stay. The stage becomes unknown, since its
// marks may be gone.
CallSequence Reinvent(CallSequence sequence, std::mt19937_64& random);

// At most `length` calls from call `begin` on; labels stay, marks of steps do not.
CallSequence Window(const CallSequence& sequence, size_t begin, size_t length);

}  // namespace dynamiccl::agents
