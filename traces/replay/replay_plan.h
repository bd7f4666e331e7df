// SPDX-License-Identifier: Apache-2.0
// The calls that one rank must issue to repeat a trace. The plan is a pure function of the trace, so all
// ranks plan consistently.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "traces/replay/replay_window.h"

namespace dynamiccl {

// A communicator to create. Every rank has the same list in the same order, because all ranks of the job
// split each of them off with these arguments.
struct ReplayCommunicator {
  uint64_t id = 0;
  int32_t n_ranks = 1;
  // Colour of this rank in the split; -1: not a member.
  int32_t color = -1;
  int32_t key = 0;  // rank of this process in the communicator
};

// Calls with one call number on one communicator. Several of them are issued between GroupStart and GroupEnd.
struct ReplayGroup {
  size_t communicator = 0;  // index into ReplayPlan::communicators
  std::vector<TraceCall> calls;
};

// The plan of one rank.
struct ReplayPlan {
  std::vector<ReplayCommunicator> communicators;
  std::vector<ReplayGroup> groups;  // in order of issue
  std::vector<std::string> notes;   // deviations from the recording: mirrored calls, calls left out
};

// The place of a rank in a mirrored communicator of `n_ranks`: neighbouring ranks form a block.
ReplayCommunicator MirroredCommunicator(uint64_t id, int32_t n_ranks, int32_t rank);

// Returns the number of ranks of the recorded job: the number of sections. For a trace with one section it is
// the larger of the world that the section states and the size of its largest communicator, and at least 2.
int32_t RecordedRanks(const Trace& trace);

// Number of ranks of a replay: `asked`; where that is 0, the number of sections of the trace, but at least 2.
int32_t ReplayRanks(const Trace& trace, int32_t asked);

// A trace of one rank is mirrored: every rank issues its calls, and communicators smaller than the job become
// blocks of neighbouring ranks. A trace of several ranks needs as many ranks as the trace has; another number
// is an error. So is a group whose size the imported file did not state (TraceSection::groups_unknown).
Result<ReplayPlan> PlanReplay(const Trace& trace, int32_t rank, int32_t world, const ReplayWindow& window);

// Returns the argument `count` of the API function, in elements. These are whole elements per rank, so a
// total that does not divide is rounded down.
uint64_t CountArgument(const CollectiveCall& call, int32_t n_ranks);

// The hash of the planned calls, comparable with OperationHash of the recorded section.
uint64_t OperationHash(const ReplayPlan& plan);

}  // namespace dynamiccl
