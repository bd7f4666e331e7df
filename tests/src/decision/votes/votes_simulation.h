// SPDX-License-Identifier: Apache-2.0
// Simulates votes of ranks by the shipped protocol, and by wrong protocols that the simulation must find.
#pragma once

#include <span>
#include <string>

#include "tests/src/decision/votes/simulated_votes.h"

namespace dynamiccl::testing {

// Returns the protocols. The first is the shipped one; each of the others breaks one rule.
std::span<const Protocol<VoteCounts>> VoteProtocols();

std::string Describe(const VoteCounts& counts);

}  // namespace dynamiccl::testing
