// SPDX-License-Identifier: Apache-2.0
// Counts the probabilities, and runs the forward algorithm.
#include "studies/agents/structure/structure_markov.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>

#include "src/policy/structure_layout.h"

namespace dynamiccl::agents {
namespace {

// Added to every transition and emission, so that nothing is impossible.
constexpr double kPseudoCount = 0.1;
// Number of kinds of sizes: octaves below the largest call, and tiny.
constexpr int kSizeKinds = 10;

int SymbolOf(const CollectiveCall& call, const CollectiveCall* before, uint64_t largest) {
  const int collective = NextCollectiveClass(call.collective);
  const int below = static_cast<int>(std::bit_width(largest)) - static_cast<int>(std::bit_width(call.bytes));
  const int size = call.bytes <= kTinyBytes ? kSizeKinds - 1 : std::clamp(below, 0, kSizeKinds - 2);
  const bool same = before != nullptr && before->bytes == call.bytes && before->collective == call.collective;
  return (collective * kSizeKinds + size) * 2 + (same ? 1 : 0);
}

int CollectiveOfSymbol(size_t symbol) {
  return static_cast<int>(symbol) / (2 * kSizeKinds);
}

void Normalise(std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  for (double& value : values) value = sum > 0 ? value / sum : 1 / static_cast<double>(values.size());
}

size_t Largest(std::span<const double> values) {
  return static_cast<size_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

}  // namespace

MarkovModel::MarkovModel(const std::vector<CallSequence>& sequences) {
  for (const CallSequence& sequence : sequences) {
    for (const IssuedCall& c : sequence.calls) {
      const State state{c.labelled_stage, c.labelled_role, c.labelled_phase};
      if (index_.try_emplace(state, states_.size()).second) states_.push_back(state);
    }
  }
  const size_t count = states_.size();
  start_.assign(count, kPseudoCount);
  moves_.assign(count, std::vector<double>(count, kPseudoCount));
  shows_.assign(count, std::vector<double>(kSymbols, kPseudoCount));
  for (const CallSequence& sequence : sequences) {
    const CollectiveCall* before = nullptr;
    size_t from = 0;
    uint64_t largest = 0;
    for (const IssuedCall& c : sequence.calls) {
      const size_t state = index_.at({c.labelled_stage, c.labelled_role, c.labelled_phase});
      largest = std::max(largest, c.call.bytes);
      (before == nullptr ? start_[state] : moves_[from][state]) += 1;
      shows_[state][static_cast<size_t>(SymbolOf(c.call, before, largest))] += 1;
      from = state;
      before = &c.call;
    }
  }
  Normalise(start_);
  for (auto& row : moves_) Normalise(row);
  for (auto& row : shows_) Normalise(row);
}

const RecognisedStructure& MarkovRecogniser::Step(const CollectiveCall& call) {
  const MarkovModel& model = *model_;
  const size_t count = model.states_.size();
  largest_ = std::max(largest_, call.bytes);
  const auto symbol = static_cast<size_t>(SymbolOf(call, first_ ? nullptr : &previous_, largest_));
  std::vector<double> next = model.start_;
  if (!first_) {
    std::fill(next.begin(), next.end(), 0.0);
    for (size_t from = 0; from < count; ++from) {
      for (size_t to = 0; to < count; ++to) next[to] += now_[from] * model.moves_[from][to];
    }
  }
  for (size_t state = 0; state < count; ++state) next[state] *= model.shows_[state][symbol];
  Normalise(next);
  now_ = std::move(next);
  previous_ = call;
  first_ = false;
  Answer();
  return recognised_;
}

void MarkovRecogniser::Answer() {
  const MarkovModel& model = *model_;
  const size_t count = model.states_.size();
  std::array<std::array<double, kLabelledRoles>, kNextCollectiveClasses> roles{};
  std::array<double, kPhases> phases{};
  std::array<double, kZeroStages> stages{};
  for (size_t to = 0; to < count; ++to) {
    const auto [stage, role, phase] = model.states_[to];
    double come = 0;
    for (size_t from = 0; from < count; ++from) come += now_[from] * model.moves_[from][to];
    phases[static_cast<size_t>(phase)] += come;
    stages[static_cast<size_t>(stage)] += now_[to];
    for (size_t symbol = 0; symbol < MarkovModel::kSymbols; ++symbol)
      roles[static_cast<size_t>(CollectiveOfSymbol(symbol))][static_cast<size_t>(role)] +=
          come * model.shows_[to][symbol];
  }
  for (size_t c = 0; c < kTunableCollectives; ++c)
    recognised_.next_role[c] = static_cast<Role>(Largest(std::span(roles[c]).subspan(1)) + 1);
  recognised_.phase = static_cast<Phase>(Largest(std::span(phases).subspan(1)) + 1);
  recognised_.stage = static_cast<ZeroStage>(Largest(std::span(stages).first(kStageClasses)));
}

StructureAccuracy JudgeMarkov(const MarkovModel& model, const std::vector<CallSequence>& sequences) {
  const auto make = [&] { return std::make_unique<RecogniserOf<MarkovRecogniser>>(MarkovRecogniser(model)); };
  return JudgeRecogniser("hidden Markov", make, sequences);
}

}  // namespace dynamiccl::agents
