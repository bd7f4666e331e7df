// SPDX-License-Identifier: Apache-2.0
// Simulates switches of tables with the shipped protocol, and with wrong ones, whose faults the same harness
// must find.
#pragma once

#include <span>
#include <string>

#include "tests/src/decision/switching/simulated_communicator.h"
#include "tests/src/decision/switching/simulated_seeds.h"

namespace dynamiccl::testing {

// Returns the protocols. The first is the shipped one; each of the others breaks one rule.
std::span<const Protocol<SimulationCounts>> Protocols();

std::string Describe(const SimulationCounts& counts);

}  // namespace dynamiccl::testing
