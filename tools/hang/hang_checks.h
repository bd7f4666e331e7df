// SPDX-License-Identifier: Apache-2.0
// Where ranks of one communicator issued unlike calls.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "tools/hang/hang_findings.h"

namespace dynamiccl {

// "AllReduce of 4 MiB, Float32, Sum".
std::string Describe(const JobCall& call);

// The first call, in program order, that is not the same on all ranks that issued it: a finding of the kinds
// Mismatch, SkippedCall, ExtraCall and SwappedCalls. Adds to `compared` the calls that at least two ranks
// know.
std::optional<HangFinding> FirstUnlikeCall(uint64_t id, const JobCommunicator& communicator,
                                           uint64_t& compared);
// The first call for which tuners of two ranks answered unlike. Adds to `compared` those that two answered.
std::optional<HangFinding> FirstUnlikeDecision(uint64_t id, const JobCommunicator& communicator,
                                               uint64_t& compared);

// Ranks that did not issue what others issued, and which of them the others wait for in the end.

// Ranks that came to make a communicator with unlike ideas of its size.
std::optional<HangFinding> UnlikeBirths(uint64_t id, const JobCommunicator& communicator);

// Who is waited for and waits for nobody: findings of the kinds AbsentFromBirth, Absent and Behind; where all
// that are waited for wait themselves, a Cycle.
std::vector<HangFinding> RanksThatDidNotCome(const JobCalls& job);

// For each communicator whose ranks are all in the same call, or have all returned from it while none of them
// has ended: a finding of kind InsideLibrary for those in which at least one rank has not returned.
std::vector<HangFinding> CommonCalls(const JobCalls& job);

// Whether ranks issued their calls on two communicators in the same order.

// Looks at the newest calls of processes that share two communicators. Returns the first two communicators on
// which two processes issued the same two calls, one on each, in opposite orders. That is legal where the
// calls can run side by side. On one stream, or where the device has no room for both, the ranks wait for
// each other without end.
std::optional<HangFinding> UnlikeOrder(const JobCalls& job);

// Sends without their receives, and the reverse.

// NCCL pairs the n-th send from one rank to another with the n-th receive there. Only pairs of ranks whose
// traces lost nothing are looked at: where a count begins is not known of the others.
std::optional<HangFinding> FirstUnmatchedTransfer(uint64_t id, const JobCommunicator& communicator);

// Ranks as a reader wants them: "rank 3", "ranks 0 to 2, 5 and 7".

// In any order; each is named once. "no rank" for none.
std::string RankList(std::span<const int32_t> ranks);

}  // namespace dynamiccl
