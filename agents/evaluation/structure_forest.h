// SPDX-License-Identifier: Apache-2.0
// The simple learnt alternative to the trigger agent: a histogram of the last calls and a random forest for
// each question.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "agents/evaluation/random_forest.h"
#include "agents/trigger/call_sequence.h"
#include "src/fingerprint/fingerprint.h"
#include "src/policy/structure_inference.h"

namespace dynamiccl::agents {

// What the forests see after a call: shares of the last calls by collective and size, and the last call.
class CallHistogram {
 public:
  static constexpr size_t kWindow = 64;  // calls
  static constexpr size_t kLastCall = kCollectives + 4;
  static constexpr size_t kWidth = std::tuple_size_v<Histogram> + kLastCall;

  void Add(const CollectiveCall& call);
  std::vector<uint8_t> Features() const;

 private:
  std::deque<CollectiveCall> window_;
  uint64_t largest_ = 0;
};

struct StructureForests {
  std::vector<RandomForest> roles;  // by collective of the next call
  std::unique_ptr<RandomForest> phase, stage;
};
StructureForests TrainForests(const std::vector<CallSequence>& sequences, std::mt19937_64& random);

// Same use as StructureTrigger; it always answers.
class ForestRecogniser {
 public:
  explicit ForestRecogniser(const StructureForests& forests) : forests_(&forests) {}
  const RecognisedStructure& Step(const CollectiveCall& call);
  const RecognisedStructure& recognised() const { return recognised_; }

 private:
  const StructureForests* forests_;
  CallHistogram histogram_;
  RecognisedStructure recognised_;
};

}  // namespace dynamiccl::agents
