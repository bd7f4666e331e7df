// SPDX-License-Identifier: Apache-2.0
// What the structure LSTM recognises where only NCCL's questions are seen, because libdynamiccl.so is loaded
// as a tuner plugin without being preloaded.
//
// A question stands for one batch of calls. It tells collective, bytes and ranks, but not the data type, the
// operator and the size of the group, so the LSTM gets kAssumedType, a sum and a lone call instead.
// docs/results/agents-structure.md says how much worse it recognises then.
#pragma once

#include "src/collective/decision_key.h"
#include "src/policy/policy.h"
#include "src/policy/structure_inference.h"

namespace dynamiccl {

// The questions about one communicator, in their order. Its TunerSession owns it; NCCL asks from one thread
// at a time. The ranks recognise the same if NCCL asks them the same. NCCL does so for equal programs, and
// the user vouches for that with the hashes (docs/doors.md). After construction it allocates nothing and
// cannot fail.
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
