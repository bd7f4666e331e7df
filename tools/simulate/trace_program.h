// SPDX-License-Identifier: Apache-2.0
// Converts a recorded trace into a job of the simulator: the same operations, with computing between them as
// each rank did.
#pragma once

#include "src/simulator/event_simulation.h"
#include "src/simulator/transfer_demand.h"
#include "tools/simulate/config_on_system.h"
#include "tools/simulate/step_summary.h"
#include "traces/replay/replay_plan.h"

namespace dynamiccl {

// A job for the simulator, and what is needed to read its result.
struct TraceJob {
  SimulatedJob job;
  // The calls that each rank issues, indexed by rank. There is one plan for all ranks if the trace is
  // mirrored (the recording of one rank, used for all ranks).
  std::vector<ReplayPlan> plans;
  // Role and size of each collective: labels[program][collective].
  std::vector<std::vector<CollectiveLabel>> labels;
  // The config that each call was to use: configs[program][call].
  std::vector<std::vector<CollectiveConfig>> configs;
  // Number of calls without a recorded duration. The job assumes that the rank waits for them only at the
  // end.
  uint64_t untimed = 0;
  // True: the times of issue were not measured, so the trace does not tell how long ranks computed between
  // calls.
  bool order_only = false;

  const ReplayPlan& PlanOf(size_t rank) const { return plans[plans.size() == 1 ? 0 : rank]; }
};

// Options for converting a trace into a job.
struct TraceJobOptions {
  // Number of ranks; 0: as many as were recorded (RecordedRanks).
  int32_t ranks = 0;
  ReplayWindow window;
  // True: computing and waiting follow the recorded times. If a call was issued after an earlier one had
  // ended, the rank is assumed to have waited for the earlier one. The rest of the gap between two calls is
  // computing. False: every rank issues its calls one after the other without pauses.
  bool paced = true;
  // Nanoseconds that a rank computes in total. Used only for a trace whose times of issue were not measured;
  // other traces show the computing themselves. The time is spread evenly over the gaps before the groups of
  // calls.
  int64_t compute_ns = 0;
  // Chooses the config of each call; empty: the config with the shortest time on the system.
  ConfigOnSystem config;
};

// Builds the job. The trace of one rank is used for all ranks, as in a replay. At the end each rank waits for
// all its calls. Sends and receives take time but do not wait for the other rank. The job has the system's
// `port_gbps` and `network_gbps`. Returns errors of PlanReplay. It is also an error if the system has no
// times for a call.
Result<TraceJob> JobOfTrace(const Trace& trace, const System& system, const TraceJobOptions& options);

// Returns the calls of a plan with the order and times of the simulation. Their OperationHash equals the
// trace's if no call was left out.
SectionCalls SimulatedCalls(const ReplayPlan& plan, const RankTiming& timing);

}  // namespace dynamiccl
