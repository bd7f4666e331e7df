// SPDX-License-Identifier: Apache-2.0
// Feeds the structure LSTM with the questions that NCCL asks its tuner. It is used if libdynamiccl.so is
// loaded as a tuner plugin without being preloaded, because the calls themselves are not seen then.
//
// A question stands for one batch of calls, and tells less than a call does (CallOfQuestion). The LSTM has
// learnt from questions, too; docs/results/agents-structure.md says how it recognises from them.
#pragma once

#include "src/collective/decision_key.h"
#include "src/fingerprint/call_token.h"
#include "src/policy/policy.h"
#include "src/policy/structure_inference.h"

namespace dynamiccl {

// The questions about one communicator, in their order. The communicator's TunerSession owns the stream; NCCL
// asks from one thread at a time. Ranks recognise the same structure if NCCL asks them the same questions, as
// it does for equal programs. By setting the hashes, the user vouches that the programs are equal
// (docs/doors.md). After construction the stream allocates nothing and cannot fail.
class QuestionStream {
 public:
  QuestionStream(const Policy& policy, int n_ranks) : agent_(policy), n_ranks_(n_ranks) {}

  // Returns what is predicted about the next question.
  const RecognisedStructure& recognised() const { return agent_.recognised(); }
  // Takes a question that has been answered.
  const RecognisedStructure& Step(const DecisionKey& question) {
    return agent_.Step(CallOfQuestion(question.collective, question.bytes, n_ranks_));
  }

 private:
  StructureAgent agent_;
  const int n_ranks_;
};

}  // namespace dynamiccl
