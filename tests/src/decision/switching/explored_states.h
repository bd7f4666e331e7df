// SPDX-License-Identifier: Apache-2.0
// Searches all orders of events for failures. It visits every state that a model can reach, asks each what
// went wrong in it, and checks that the end can still be reached from it. It need not reach the end on every
// path: a fair network takes a path that leads there.
//
// Model: a copyable State with a `failure`, First(), After(state): the states that one event leads to,
// Digest(state), and HasEnded(state), which is called once for each state.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tests/src/decision/switching/simulated_seeds.h"

namespace dynamiccl::testing {

template <class Model>
class ExploredStates {
 public:
  using State = typename Model::State;

  explicit ExploredStates(Model& model) : model_(model) {}

  // Returns the failure in some order of events, or an empty text if there is none.
  std::string Explore() {
    std::vector<State> open;
    open.push_back(model_.First());
    (void)NumberOf(open.back());
    while (!open.empty()) {
      const State state = std::move(open.back());
      open.pop_back();
      const uint32_t number = NumberOf(state).first;
      if (model_.HasEnded(state)) ended_.push_back(number);
      for (State& next : model_.After(state)) {
        if (!next.failure.empty()) return next.failure;
        const auto [reached, is_new] = NumberOf(next);
        if (reached != number) steps_.emplace_back(reached, number);
        if (is_new) open.push_back(std::move(next));
      }
    }
    return StatesThatCanEnd() == numbers_.size() ? "" : std::string(kEndlessWait);
  }
  size_t size() const { return numbers_.size(); }

 private:
  // Returns the number of a state, and whether the state is new. Two states with equal digests of 64 bits
  // would count as one; with millions of states the odds are one in a million.
  std::pair<uint32_t, bool> NumberOf(const State& state) {
    const auto [found, is_new] =
        numbers_.try_emplace(model_.Digest(state), static_cast<uint32_t>(numbers_.size()));
    return {found->second, is_new};
  }

  // Counts the states from which an end can be reached, backwards from the ends.
  size_t StatesThatCanEnd() {
    std::sort(steps_.begin(), steps_.end());
    std::vector<bool> can_end(numbers_.size());
    std::vector<uint32_t> open = ended_;
    for (const uint32_t number : open) can_end[number] = true;
    size_t count = open.size();
    while (!open.empty()) {
      const uint32_t reached = open.back();
      open.pop_back();
      auto step = std::lower_bound(steps_.begin(), steps_.end(), std::pair{reached, uint32_t{0}});
      for (; step != steps_.end() && step->first == reached; ++step) {
        if (can_end[step->second]) continue;
        can_end[step->second] = true;
        open.push_back(step->second);
        ++count;
      }
    }
    return count;
  }

  Model& model_;
  std::unordered_map<uint64_t, uint32_t> numbers_;    // By digest.
  std::vector<std::pair<uint32_t, uint32_t>> steps_;  // Each pair is (to, from).
  std::vector<uint32_t> ended_;
};

}  // namespace dynamiccl::testing
