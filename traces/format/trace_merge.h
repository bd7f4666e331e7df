// SPDX-License-Identifier: Apache-2.0
// Puts the traces of several ranks together and checks that they are of the same run.
#pragma once

#include <vector>

#include "src/base/status.h"
#include "src/collective/collective.h"
#include "traces/format/trace.h"

namespace dynamiccl {

// The order of the sections of a merged trace: by rank, then host and process.
bool IsMergedBefore(const TraceSection& a, const TraceSection& b);

// Returns all sections in the order of IsMergedBefore, with nodes counted by host (CountNodesByHost). Two
// sections of one known rank are an error.
Result<Trace> MergeTraces(std::vector<Trace> traces);

// Checks that on each communicator all ranks issued the same collectives in the same order. If they did not,
// the run was broken: NCCL would hang or corrupt data. The error names communicator, call and the two ranks.
// A rank whose process was killed may lack calls at the end. A rank that lost records is compared from its
// last gap on (MayHaveGaps). Send and Recv differ between ranks by nature and are not compared. They take
// call numbers, though. A communicator with Send or Recv is therefore compared by the order of its
// collectives, and only if no rank lost records.
Status CheckRanksAgree(const Trace& trace);

// Returns true if calls may be missing between calls of the section. The rings of a recorder's threads may
// have replaced records of different periods. Another tool has one ring for all threads, so the calls that it
// keeps have no gap. If numbers between them are missing, the import left out the calls with these numbers.
bool MayHaveGaps(const TraceSection& section);

// True for a call that only some of the ranks issue. All ranks issue AllToAll, Scatter and Gather, though the
// library implements them with sends and receives.
constexpr bool IsPointToPoint(Collective collective) {
  return collective >= Collective::kSendRecv && collective < Collective::kAllToAll;
}

// Derives the number of nodes of communicators from the hosts of their ranks: NCCL tells that number only to
// a tuner, and a recorder without a tuner writes 1. Writes the number of hosts into the Communicator records
// of communicators whose ranks are all in the trace and about which no tuner was asked. NCCL counts nodes in
// the same way, by host name and boot. Emulated nodes on one host look like one host, so their number stays
// 1.
void CountNodesByHost(Trace& trace);

}  // namespace dynamiccl
