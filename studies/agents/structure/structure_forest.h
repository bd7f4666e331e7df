// SPDX-License-Identifier: Apache-2.0
// The simple learned alternative to the structure agent: a histogram of the last calls, and a random forest
// for each question.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "agents/evaluation/structure_accuracy.h"
#include "agents/structure/call_sequence.h"
#include "src/collective/collective_call.h"
#include "src/policy/structure_inference.h"
#include "studies/agents/structure/random_forest.h"

namespace dynamiccl::agents {

// Number of octaves below the largest call that are counted separately. Smaller calls share the last one. 24
// octaves reach from 1 GiB down to 64 bytes.
inline constexpr int kHistogramOctaves = 24;
// The rows of a histogram: the collectives up to Recv. Calls of the other exchanges count as SendRecv.
inline constexpr int kHistogramRows = 8;
// Shares of calls by (row, octaves below the largest call).
using Histogram = std::array<float, kHistogramRows * kHistogramOctaves>;
// Returns the shares, which sum to 1 or are all 0 without calls. Sizes are relative to the largest call, so
// the histogram does not depend on the model's width.
Histogram RelativeHistogram(const std::deque<CollectiveCall>& window);

// The forests' view after a call: shares of the last calls by collective and size, and features of the last
// call.
class CallHistogram {
 public:
  // Number of calls in the histogram.
  static constexpr size_t kWindow = 64;
  // Features of the last call: its collective, its size below the largest, the change of size, equal size,
  // tiny.
  static constexpr size_t kLastCall = kHistogramRows + 4;
  static constexpr size_t kWidth = std::tuple_size_v<Histogram> + kLastCall;

  void Add(const CollectiveCall& call);
  // kWidth features in kFeatureSteps steps. At least one call must have been added.
  std::vector<uint8_t> Features() const;

 private:
  std::deque<CollectiveCall> window_;
  uint64_t largest_ = 0;
};

// One forest for each question.
struct StructureForests {
  // One forest for each collective of the next call.
  std::vector<RandomForest> roles;
  std::unique_ptr<RandomForest> phase, stage;
};
// Trains all forests on every third call of the sequences.
StructureForests TrainForests(const std::vector<CallSequence>& sequences, std::mt19937_64& random);

// Used like StructureAgent, but it always answers. The forests must outlive it.
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

StructureAccuracy JudgeForests(const StructureForests& forests, const std::vector<CallSequence>& sequences);

}  // namespace dynamiccl::agents
