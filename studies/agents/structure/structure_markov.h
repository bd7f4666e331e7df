// SPDX-License-Identifier: Apache-2.0
// Another simple learned alternative to the structure agent: a hidden Markov model whose states are labels
// (stage, role, phase). Its probabilities are counted on labelled sequences, and states are filtered forward
// (Rabiner, Proc. IEEE 77, 1989).
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "agents/evaluation/structure_accuracy.h"
#include "agents/structure/call_sequence.h"
#include "src/policy/structure_inference.h"

namespace dynamiccl::agents {

// Immutable after construction. Start, transition and emission probabilities have pseudo-counts, so that
// nothing is impossible.
class MarkovModel {
 public:
  // A call shows its collective, the octaves below the largest call so far (8 and more count as one value),
  // whether it is tiny, and whether it equals the call before.
  static constexpr int kSymbols = 6 * 10 * 2;

  explicit MarkovModel(const std::vector<CallSequence>& sequences);

 private:
  friend class MarkovRecogniser;
  using State = std::tuple<ZeroStage, Role, Phase>;

  std::map<State, size_t> index_;
  std::vector<State> states_;
  std::vector<double> start_;
  // Transition probabilities, [from][to].
  std::vector<std::vector<double>> moves_;
  // Emission probabilities, [state][symbol].
  std::vector<std::vector<double>> shows_;
};

// Used like StructureAgent, but it always answers. The model must outlive it.
class MarkovRecogniser {
 public:
  explicit MarkovRecogniser(const MarkovModel& model) : model_(&model) {}
  const RecognisedStructure& Step(const CollectiveCall& call);
  const RecognisedStructure& recognised() const { return recognised_; }

 private:
  // Predicts the next call's roles and phase from one transition ahead.
  void Answer();

  const MarkovModel* model_;
  // Probability of each state at the last call.
  std::vector<double> now_;
  CollectiveCall previous_;
  uint64_t largest_ = 0;
  bool first_ = true;
  RecognisedStructure recognised_;
};

StructureAccuracy JudgeMarkov(const MarkovModel& model, const std::vector<CallSequence>& sequences);

}  // namespace dynamiccl::agents
