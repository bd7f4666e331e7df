// SPDX-License-Identifier: Apache-2.0
// Runs many simulated lives, one seed after the other, with the shipped protocol and with wrong ones, whose
// faults the same harness must find.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tests/src/decision/switching/simulated_faults.h"

namespace dynamiccl::testing {

struct Simulation {
  uint64_t first_seed = 1;
  uint64_t seeds = 1;
  uint64_t decisions_per_seed = 100'000;  // This is the minimum.
};

// Counts: a struct of uint64_t with a member `decisions`.
template <class Counts>
struct SimulationResult {
  Counts counts;
  std::optional<uint64_t> failing_seed;
  std::string failure;
};

template <class Counts>
struct Protocol {
  std::string_view name;
  std::string_view what;
  std::string_view found_as;  // The beginning of its failure's text; empty for the right protocol.
  SimulationResult<Counts> (*run)(const Simulation&);
};

inline constexpr std::string_view kDivergent = "DIVERGENT";
inline constexpr std::string_view kEndlessWait = "ENDLESS WAIT";

template <class Counts>
void AddCounts(const Counts& more, Counts& sum) {
  static_assert(sizeof(Counts) % sizeof(uint64_t) == 0);
  const auto* from = reinterpret_cast<const uint64_t*>(&more);
  auto* to = reinterpret_cast<uint64_t*>(&sum);
  for (size_t i = 0; i < sizeof(Counts) / sizeof(uint64_t); ++i) to[i] += from[i];
}

// Life(seed, decisions).Live(counts) returns the failure, or an empty text.
template <class Life, class Counts>
SimulationResult<Counts> LiveThrough(const Simulation& simulation) {
  SimulationResult<Counts> result;
  for (uint64_t seed = simulation.first_seed; seed < simulation.first_seed + simulation.seeds; ++seed) {
    SeededRandom lives(seed);
    const uint64_t end = result.counts.decisions + simulation.decisions_per_seed;
    while (result.counts.decisions < end) {
      const auto decisions =
          static_cast<uint64_t>(lives.AcrossScales(Life::kLeastDecisions, Life::kMostDecisions));
      Life life(lives.Next(), decisions);
      result.failure = life.Live(result.counts);
      if (result.failure.empty()) continue;
      result.failing_seed = seed;
      return result;
    }
  }
  return result;
}

}  // namespace dynamiccl::testing
