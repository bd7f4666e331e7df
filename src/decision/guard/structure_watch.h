// SPDX-License-Identifier: Apache-2.0
// Finds out whether a job has become another one since its last experiment. Two signs are needed: the
// structure LSTM reported a change of the calls or another ZeRO stage, and the job's steps consist of calls
// that no earlier experiment had.
//
// One sign alone is not enough. A rare call, such as one for a checkpoint, surprises the LSTM, but the steps
// stay. A period that was found wrongly at first makes new steps, but the LSTM reports nothing. And a job
// that returns to steps that were searched before, as after an evaluation, has nothing new to search.
#pragma once

#include <cstdint>
#include <set>

#include "src/collective/role.h"

namespace dynamiccl {

// The changes of one communicator's structure, owned by its Guard on the leader's control thread.
class StructureWatch {
 public:
  // The most changes that IsOther reports in a job, because the search after each change may use up another
  // credit.
  static constexpr int kMaxChanges = 8;

  // Adds the LSTM's output before a call: how many changes it has reported so far, and the ZeRO stage.
  void Take(uint32_t changes, ZeroStage stage) {
    changes_ = changes;
    if (stage != ZeroStage::kUnknown) stage_ = stage;
  }
  // Call this when an experiment begins on steps with this digest. Returns true if no earlier experiment had
  // these steps and the job's structure has changed since the last experiment.
  bool IsOther(uint64_t digest_of_steps);
  // Number of times that IsOther returned true.
  int others() const { return others_; }

 private:
  uint32_t changes_ = 0;
  ZeroStage stage_ = ZeroStage::kUnknown;
  // The values of changes_ and stage_ when the last experiment began.
  uint32_t changes_before_ = 0;
  ZeroStage stage_before_ = ZeroStage::kUnknown;
  std::set<uint64_t> searched_;  // digests of steps and stages on which experiments began
  int others_ = 0;
};

}  // namespace dynamiccl
