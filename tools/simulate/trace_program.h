// SPDX-License-Identifier: Apache-2.0
// A recorded trace as a job of the simulator: the same operations, with what each rank computed between them.
#pragma once

#include "src/simulator/event_simulation.h"
#include "src/simulator/transfer_demand.h"
#include "tools/simulate/config_on_system.h"
#include "tools/simulate/step_summary.h"
#include "traces/replay/replay_plan.h"

namespace dynamiccl {

struct TraceJob {
  SimulatedJob job;
  std::vector<ReplayPlan> plans;                       // by rank: what is issued
  std::vector<std::vector<CollectiveLabel>> labels;    // by program
  std::vector<std::vector<CollectiveConfig>> configs;  // by program and call: what was asked for
  uint64_t untimed = 0;  // calls without a recorded duration: none of them is taken to have been waited for
};

struct TraceJobOptions {
  int32_t ranks = 0;  // as ReplayRanks takes it
  ReplayWindow window;
  // A call that was issued after an earlier one had ended is taken to have waited for it; the rest of the gap
  // between two calls is computing. Else every rank issues its calls at once, one after the other.
  bool paced = true;
  ConfigOnSystem config;  // empty: the cheapest path
};

// A trace of one rank is mirrored, as replay does. All is waited for at the end. Sends and receives take
// their time, but do not wait for the other side. `port_gbps`, `network_gbps` of SimulatedJob are those of
// the system.
Result<TraceJob> JobOfTrace(const Trace& trace, const System& system, const TraceJobOptions& options);

// The calls of a plan in the order, and with the times, that the simulation gave them: OperationHash of it is
// the trace's own where nothing was left out.
SectionCalls SimulatedCalls(const ReplayPlan& plan, const RankTiming& timing);

}  // namespace dynamiccl
