// SPDX-License-Identifier: Apache-2.0
// Simulated votes of ranks: the protocol that ships, and wrong ones that the same harness must find.
#pragma once

#include <span>
#include <string>

#include "tests/src/decision/votes/simulated_votes.h"

namespace dynamiccl::testing {

// The first is the one that ships; each of the others breaks one rule.
std::span<const Protocol<VoteCounts>> VoteProtocols();

std::string Describe(const VoteCounts& counts);

}  // namespace dynamiccl::testing
