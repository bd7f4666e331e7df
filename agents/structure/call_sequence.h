// SPDX-License-Identifier: Apache-2.0
// Labelled calls of one communicator, on which the structure agent is trained and evaluated. Sequences come
// from traces and from generators; both kinds can be varied with Rescale and Reinvent.
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
  // Name for messages: file and communicator, or the generator's parameters.
  std::string name;
  std::vector<IssuedCall> calls;
  // Training and test data are split by framework and family; both are empty if unknown. Framework names are
  // those of FrameworkGenerator::name.
  std::string framework{};
  // The model's family, for example "gpt" or "llama".
  std::string family{};
  // Index of the first call of each step, ascending; empty if steps are not marked. Calls before the first
  // entry belong to the construction of the job.
  std::vector<size_t> step_begins{};
};

// Returns one sequence for every communicator of the trace: the collectives of its lowest recorded rank in
// program order. Sends, receives and the operations made of them are left out, as in a job.
std::vector<CallSequence> AllSequencesOf(const Trace& trace, const std::string& name);
// The sequences of AllSequencesOf that have at least one labelled call.
std::vector<CallSequence> SequencesOf(const Trace& trace, const std::string& name);

// Returns the sequence of the same program with another hidden width, number of ranks and data type. Sizes
// above those of scalars are multiplied by a common factor from 1/16 to 64. The number of ranks changes (it
// stays small where activations are exchanged), and sometimes the element size does. Order and labels stay.
CallSequence Rescale(CallSequence scaled, std::mt19937_64& random);

// Returns the sequence of the same program as if written with another framework: gradients are summed with
// another collective, parameters are gathered with another one, and sometimes scalars are removed. Roles and
// phases stay. The stage becomes unknown, because the calls that reveal it may have changed.
CallSequence Reinvent(CallSequence sequence, std::mt19937_64& random);

// Returns the sequence as a tuner plugin sees it without the preloaded object: one question for each call
// (CallOfQuestion). Labels stay.
CallSequence AsQuestions(CallSequence sequence);

// Returns at most `length` calls from call `begin` on. The calls keep their labels, but the result has no
// marks of steps.
CallSequence Window(const CallSequence& sequence, size_t begin, size_t length);

}  // namespace dynamiccl::agents
