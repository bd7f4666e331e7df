// SPDX-License-Identifier: Apache-2.0
// Where ranks of one communicator issued unlike calls.
#pragma once

#include <optional>

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

}  // namespace dynamiccl
