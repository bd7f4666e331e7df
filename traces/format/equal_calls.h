// SPDX-License-Identifier: Apache-2.0
// Compares the ranks of a trace without keeping their records.
#pragma once

#include "src/base/status.h"
#include "traces/format/record_source.h"

namespace dynamiccl {

// Returns true if, on each communicator, all ranks issued the same collectives under the same numbers, so
// that CheckRanksAgree (trace_merge.h) finds nothing. The calls are compared by a count and a sum of 64-bit
// hashes. False means that the ranks differ. CheckRanksAgree then says how, or accepts the difference. An
// error of the source is returned.
Result<bool> RanksHaveEqualCalls(const RecordSource& source);

// Does what CheckRanksAgree does, in several passes over the source, with the records of some thousand calls
// in memory. Compares the calls of a communicator that all its ranks still have. A rank that lost records is
// compared from its last gap on; a rank whose process was killed may lack the last calls. Communicators with
// sends or receives are not compared. The inner status says how the ranks differ, as CheckRanksAgree does;
// the outer error is one of the source, which says nothing about the ranks.
Result<Status> CompareRanks(const RecordSource& source);

}  // namespace dynamiccl
