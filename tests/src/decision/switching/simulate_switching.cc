// SPDX-License-Identifier: Apache-2.0
// Simulates switches of tables under faults, any number of seeds: 0 when no decision diverged, no rank waited
// for ever and all converged; else 1 and the seed that shows it again.
#include <CLI/CLI.hpp>

#include "tests/src/decision/switching/simulation.h"

namespace {

using dynamiccl::testing::Describe;
using dynamiccl::testing::Protocol;
using dynamiccl::testing::Protocols;
using dynamiccl::testing::Simulation;

const Protocol* FindProtocol(const std::string& name) {
  for (const Protocol& protocol : Protocols()) {
    if (protocol.name == name) return &protocol;
  }
  return nullptr;
}

int Simulate(const Protocol& protocol, const Simulation& simulation) {
  const auto result = protocol.run(simulation);
  fmt::print("{}: {}\n", protocol.name, Describe(result.counts));
  if (!result.failing_seed) {
    fmt::print("0 divergent decisions, 0 endless waits, all converged; seeds {} to {}\n",
               simulation.first_seed, simulation.first_seed + simulation.seeds - 1);
    return 0;
  }
  fmt::print("seed {}: {}\nagain: simulate_switching --protocol {} --seed {} --decisions {}\n",
             *result.failing_seed, result.failure, protocol.name, *result.failing_seed,
             simulation.decisions_per_seed);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Switches of tables under delays, losses, reordering, crashes and stalls, in virtual time.");
  uint64_t decisions = 10'000'000;
  uint64_t seeds = 100;
  uint64_t seed = 0;
  std::string name = "pledge";
  app.add_option("--decisions", decisions, "Decisions over all seeds (with --seed: of that seed).")
      ->check(CLI::PositiveNumber);
  app.add_option("--seeds", seeds, "How many seeds.")->check(CLI::PositiveNumber);
  app.add_option("--seed", seed, "Only this one.");
  app.add_option("--protocol", name, "Which protocol; all but the first are wrong on purpose.")
      ->check([](const std::string& text) {
        if (FindProtocol(text) != nullptr) return std::string();
        std::string known = "known:";
        for (const Protocol& protocol : Protocols())
          known += fmt::format("\n  {}: {}", protocol.name, protocol.what);
        return known;
      });
  CLI11_PARSE(app, argc, argv);
  Simulation simulation;
  simulation.first_seed = seed == 0 ? 1 : seed;
  simulation.seeds = seed == 0 ? seeds : 1;
  simulation.decisions_per_seed = std::max<uint64_t>(1, decisions / simulation.seeds);
  return Simulate(*FindProtocol(name), simulation);
}
