// SPDX-License-Identifier: Apache-2.0
// Many simulated communicators, seed after seed, and the wrong protocols that the same harness must find.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tests/src/decision/switching/simulated_communicator.h"

namespace dynamiccl::testing {

struct Simulation {
  uint64_t first_seed = 1;
  uint64_t seeds = 1;
  uint64_t decisions_per_seed = 100'000;  // at least
};

struct SimulationResult {
  SimulationCounts counts;
  std::optional<uint64_t> failing_seed;
  std::string failure;
};

struct Protocol {
  std::string_view name;
  std::string_view what;
  std::string_view found_as;  // how its failure begins; empty for the right one
  SimulationResult (*run)(const Simulation&);
};

// The first is the one that ships; each of the others breaks one rule.
std::span<const Protocol> Protocols();

std::string Describe(const SimulationCounts& counts);

}  // namespace dynamiccl::testing
