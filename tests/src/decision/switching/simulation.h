// SPDX-License-Identifier: Apache-2.0
// Simulated switches of tables: the protocol that ships, and wrong ones that the same harness must find.
#pragma once

#include <span>
#include <string>

#include "tests/src/decision/switching/simulated_communicator.h"
#include "tests/src/decision/switching/simulated_seeds.h"

namespace dynamiccl::testing {

// The first is the one that ships; each of the others breaks one rule.
std::span<const Protocol<SimulationCounts>> Protocols();

std::string Describe(const SimulationCounts& counts);

}  // namespace dynamiccl::testing
