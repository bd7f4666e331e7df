// SPDX-License-Identifier: Apache-2.0
// Converts a recorded trace into a job of the simulator: the same operations, with the computing of each rank
// between them.
#pragma once

#include "src/simulator/event_simulation.h"
#include "src/simulator/transfer_demand.h"
#include "tools/simulate/config_on_system.h"
#include "tools/simulate/step_summary.h"
#include "traces/replay/replay_plan.h"

namespace dynamiccl {

// The job and what is needed to read its result.
struct TraceJob {
  SimulatedJob job;
  // The calls that each rank issues, by rank. A mirrored trace has one plan for all ranks.
  std::vector<ReplayPlan> plans;
  // Labels of the collectives, by program.
  std::vector<std::vector<CollectiveLabel>> labels;
  // By program and call: the config that was asked for.
  std::vector<std::vector<CollectiveConfig>> configs;
  // Calls without a recorded duration. The job assumes that the rank waits for them only at the end.
  uint64_t untimed = 0;
  // The times of issue were not measured, so that the trace does not tell what was computed between calls.
  bool order_only = false;

  const ReplayPlan& PlanOf(size_t rank) const { return plans[plans.size() == 1 ? 0 : rank]; }
};

// Options for converting a trace into a job.
struct TraceJobOptions {
  // Number of ranks; 0: RecordedRanks.
  int32_t ranks = 0;
  ReplayWindow window;
  // True: a rank is assumed to have waited for an earlier call if a later call was issued after the end of
  // the earlier one. The rest of the gap between two calls is computing. False: every rank issues its calls
  // one after the other without pauses.
  bool paced = true;
  // Nanoseconds that a rank computes in total, for traces whose times of issue were not measured. The time is
  // spread evenly over the gaps before the groups of calls. It is ignored for other traces, which show the
  // computing themselves.
  int64_t compute_ns = 0;
  // Decides the config of each call; empty: the cheapest path.
  ConfigOnSystem config;
};

// Builds the job. A trace of one rank is mirrored to all ranks, as in a replay. At the end each rank waits
// for all its calls. Sends and receives take time but do not wait for the other rank. The job has the
// system's `port_gbps` and `network_gbps`. Returns errors of PlanReplay, and an error if the system has no
// path for a call.
Result<TraceJob> JobOfTrace(const Trace& trace, const System& system, const TraceJobOptions& options);

// Returns the calls of a plan with the order and times of the simulation. Their OperationHash equals that of
// the trace if nothing was left out.
SectionCalls SimulatedCalls(const ReplayPlan& plan, const RankTiming& timing);

}  // namespace dynamiccl
