// SPDX-License-Identifier: Apache-2.0
// Finds calls in which the ranks of one communicator differ.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "tools/hang/hang_findings.h"

namespace dynamiccl {

// "AllReduce of 4 MiB, Float32, Sum".
std::string Describe(const JobCall& call);

// Finds the first call, in program order, that is not the same on all ranks that issued it. The finding is a
// Mismatch, SkippedCall, ExtraCall or SwappedCalls. Adds to `compared` the number of calls that at least two
// ranks issued.
std::optional<HangFinding> FirstUnlikeCall(uint64_t id, const JobCommunicator& communicator,
                                           uint64_t& compared);
// Finds the first call for which the tuners of two ranks gave different answers. Adds to `compared` the
// number of calls that at least two tuners answered.
std::optional<HangFinding> FirstUnlikeDecision(uint64_t id, const JobCommunicator& communicator,
                                               uint64_t& compared);

// Finds ranks that create one communicator with different numbers of ranks.
std::optional<HangFinding> UnlikeInits(uint64_t id, const JobCommunicator& communicator);

// Finds ranks for which others wait, but which do not wait themselves: findings of the kinds AbsentFromInit,
// Absent and Behind. When every rank that is waited for waits itself, the finding is a Cycle.
std::vector<HangFinding> RanksThatDidNotCome(const JobCalls& job);

// Finds ranks whose processes were stopped (JobProcess::stopped).
std::optional<HangFinding> StoppedRanks(const JobCalls& job);

// Adds a finding of kind InsideLibrary for each communicator on which all ranks do the same and at least one
// has not returned. All ranks may be in the same call, or may all have entered the creation of the
// communicator.
std::vector<HangFinding> CommonCalls(const JobCalls& job);

// Adds a finding of kind Failed for each communicator on which all ranks issued the same calls, but the
// launcher saw some ranks fail by themselves.
std::vector<HangFinding> RanksThatFailed(const JobCalls& job);

// Compares the order in which ranks issued their newest calls on two communicators. Returns the first two
// communicators on which two processes issued the same two calls, one on each, in opposite orders. This is
// legal where the calls can run side by side. On one stream, or where the device has no room for both, the
// ranks wait for each other forever.
std::optional<HangFinding> UnlikeOrder(const JobCalls& job);

// Finds sends without their receives, and receives without their sends. NCCL pairs the n-th send from one
// rank to another with the n-th receive there. Only pairs of ranks whose sends and receives are all known
// or counted are compared, and sizes only where both calls are known.
std::optional<HangFinding> FirstUnmatchedTransfer(uint64_t id, const JobCommunicator& communicator);
// Returns the ranks of the job that have sends or receives which FirstUnmatchedTransfer leaves out.
std::vector<int32_t> RanksWithUnmatchedTransfers(const JobCalls& job);

// Formats ranks for a reader: "rank 3", "ranks 0 to 2, 5 and 7". Accepts the ranks in any order and names
// each of them once; an empty list gives "no rank".
std::string RankList(std::span<const int32_t> ranks);

}  // namespace dynamiccl
