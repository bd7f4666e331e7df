// SPDX-License-Identifier: Apache-2.0
// Simulated meetings of ranks: the protocol that ships, and wrong ones that the same harness must find.
#pragma once

#include <span>
#include <string>

#include "tests/src/decision/meetings/simulated_meetings.h"

namespace dynamiccl::testing {

// The first is the one that ships; each of the others breaks one rule.
std::span<const Protocol<MeetingCounts>> MeetingProtocols();

std::string Describe(const MeetingCounts& counts);

}  // namespace dynamiccl::testing
