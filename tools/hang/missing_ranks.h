// SPDX-License-Identifier: Apache-2.0
// Ranks that did not issue what others issued, and which of them the others wait for in the end.
#pragma once

#include <optional>

#include "tools/hang/hang_findings.h"

namespace dynamiccl {

// Ranks that came to make a communicator with unlike ideas of its size.
std::optional<HangFinding> UnlikeBirths(uint64_t id, const JobCommunicator& communicator);

// Who is waited for and waits for nobody: findings of the kinds AbsentFromBirth, Absent and Behind; where all
// that are waited for wait themselves, a Cycle.
std::vector<HangFinding> RanksThatDidNotCome(const JobCalls& job);

// For each communicator whose ranks are all in the same call, or have all returned from it while none of them
// has ended: a finding of kind InsideLibrary for those in which at least one rank has not returned.
std::vector<HangFinding> CommonCalls(const JobCalls& job);

}  // namespace dynamiccl
