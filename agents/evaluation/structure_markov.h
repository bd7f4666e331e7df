// SPDX-License-Identifier: Apache-2.0
// Another simple learnt alternative to the trigger agent: a hidden Markov model whose states are labels
// (stage, role, phase), counted on labelled sequences and filtered forward.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "agents/trigger/call_sequence.h"
#include "src/policy/structure_inference.h"

namespace dynamiccl::agents {

class MarkovModel {
 public:
  // What a call shows: collective, octaves below the largest call so far (8 and more are one), tiny, same as
  // the call before.
  static constexpr int kSymbols = 6 * 10 * 2;

  explicit MarkovModel(const std::vector<CallSequence>& sequences);

 private:
  friend class MarkovRecogniser;
  using State = std::tuple<ZeroStage, Role, Phase>;

  std::map<State, size_t> index_;
  std::vector<State> states_;
  std::vector<double> start_;
  std::vector<std::vector<double>> moves_;  // [from][to]
  std::vector<std::vector<double>> shows_;  // [state][symbol]
};

// Same use as StructureTrigger; it always answers.
class MarkovRecogniser {
 public:
  explicit MarkovRecogniser(const MarkovModel& model) : model_(&model) {}
  const RecognisedStructure& Step(const CollectiveCall& call);
  const RecognisedStructure& recognised() const { return recognised_; }

 private:
  void Answer();

  const MarkovModel* model_;
  std::vector<double> now_;  // probability of each state at the last call
  CollectiveCall previous_;
  uint64_t largest_ = 0;
  bool first_ = true;
  RecognisedStructure recognised_;
};

}  // namespace dynamiccl::agents
