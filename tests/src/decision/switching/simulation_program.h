// SPDX-License-Identifier: Apache-2.0
// The command line of a simulation program. Exit code 0: no decision diverged, no rank waited for ever, and
// all ranks converged. Else 1, and the program prints the seed that repeats the failure.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <span>
#include <string>

#include "tests/src/decision/switching/simulated_seeds.h"

namespace dynamiccl::testing {

template <class Counts>
int Simulate(const std::string& program, const Protocol<Counts>& protocol, const Simulation& simulation) {
  const auto result = protocol.run(simulation);
  fmt::print("{}: {}\n", protocol.name, Describe(result.counts));
  if (!result.failing_seed) {
    fmt::print("0 divergent decisions, 0 endless waits, all converged; seeds {} to {}\n",
               simulation.first_seed, simulation.first_seed + simulation.seeds - 1);
    return 0;
  }
  fmt::print("seed {}: {}\nagain: {} --protocol {} --seed {} --decisions {}\n", *result.failing_seed,
             result.failure, program, protocol.name, *result.failing_seed, simulation.decisions_per_seed);
  return 1;
}

template <class Counts>
const Protocol<Counts>* FindProtocol(std::span<const Protocol<Counts>> protocols, const std::string& name) {
  for (const auto& protocol : protocols) {
    if (protocol.name == name) return &protocol;
  }
  return nullptr;
}

template <class Counts>
int SimulationMain(const std::string& program, const std::string& what,
                   std::span<const Protocol<Counts>> protocols, int argc, char** argv) {
  CLI::App app(what);
  uint64_t decisions = 10'000'000;
  uint64_t seeds = 100;
  uint64_t seed = 0;
  std::string name(protocols.front().name);
  app.add_option("--decisions", decisions, "Decisions over all seeds (with --seed: of that seed).")
      ->check(CLI::PositiveNumber);
  app.add_option("--seeds", seeds, "How many seeds.")->check(CLI::PositiveNumber);
  app.add_option("--seed", seed, "Only this one.");
  app.add_option("--protocol", name, "Which protocol; all but the first are wrong on purpose.")
      ->check([&](const std::string& text) {
        if (FindProtocol(protocols, text) != nullptr) return std::string();
        std::string known = "known:";
        for (const auto& protocol : protocols)
          known += fmt::format("\n  {}: {}", protocol.name, protocol.what);
        return known;
      });
  CLI11_PARSE(app, argc, argv);
  Simulation simulation;
  simulation.first_seed = seed == 0 ? 1 : seed;
  simulation.seeds = seed == 0 ? seeds : 1;
  simulation.decisions_per_seed = std::max<uint64_t>(1, decisions / simulation.seeds);
  return Simulate(program, *FindProtocol(protocols, name), simulation);
}

}  // namespace dynamiccl::testing
