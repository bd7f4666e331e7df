// SPDX-License-Identifier: Apache-2.0
// Feeds the structure LSTM with the questions that NCCL asks its tuner. It is used if libdynamiccl.so is
// loaded as a tuner plugin without being preloaded, because the calls themselves are not seen then.
//
// A question stands for one batch of calls. It tells collective, bytes and ranks, but not the data type, the
// operator and the size of the group. So the LSTM gets kAssumedType, a sum and a lone call instead.
// docs/results/agents-structure.md says how much worse the LSTM recognises then.
#pragma once

#include "src/collective/decision_key.h"
#include "src/policy/policy.h"
#include "src/policy/structure_inference.h"

namespace dynamiccl {

// The questions about one communicator, in their order. The communicator's TunerSession owns the stream; NCCL
// asks from one thread at a time. Ranks recognise the same structure if NCCL asks them the same questions, as
// it does for equal programs. That the programs are equal is vouched for by the user with the hashes
// (docs/doors.md). After construction the stream allocates nothing and cannot fail.
class QuestionStream {
 public:
  // The LSTM is told that each call has this type. With bfloat16 instead, the LSTM recognised no job better
  // and one job worse (roles of this project's trainer).
  static constexpr DataType kAssumedType = DataType::kFloat32;

  QuestionStream(const Policy& policy, int n_ranks) : agent_(policy), n_ranks_(n_ranks) {}

  // Returns what is predicted about the next question.
  const RecognisedStructure& recognised() const { return agent_.recognised(); }
  // Takes a question that has been answered.
  const RecognisedStructure& Step(const DecisionKey& question) {
    CollectiveCall call;
    call.bytes = question.bytes;
    call.collective = question.collective;
    call.data_type = kAssumedType;
    call.group_size = 1;
    call.n_ranks = n_ranks_;
    return agent_.Step(call);
  }

 private:
  StructureAgent agent_;
  const int n_ranks_;
};

}  // namespace dynamiccl
