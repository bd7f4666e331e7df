// SPDX-License-Identifier: Apache-2.0
// A replay in virtual time: the plan that ranks would issue over a library (traces/replay/replay_plan.h),
// issued to the event simulator.
#pragma once

#include <vector>

#include "tools/simulate/described_system.h"
#include "tools/simulate/trace_program.h"

namespace dynamiccl {

// A system (the simulator's description of a machine) with the speed of its network.
struct NamedSystem {
  System system;
  // Bandwidth of a node's network in GB/s. It is known only for the systems that are part of the program. 0:
  // not known; the simulator then derives it from the times of the system's collectives.
  double network_gbps = 0;
};
// Returns the described system of this name or, if there is none, reads the system file at this path
// (docs/formats/system.md).
Result<NamedSystem> FindSystem(const std::string& name_or_path);

// Result of a simulation; times are those of rank 0, in microseconds.
struct SimulatedReplay {
  // Rank 0's plan.
  ReplayPlan plan;
  // The config of each call of rank 0, in the order of the plan.
  std::vector<CollectiveConfig> configs;
  // For each group of calls in the plan: microseconds from the group's begin to its end in the stream.
  std::vector<double> group_us;
  // OperationHash of what each rank issued.
  std::vector<uint64_t> operations;
  // Microseconds of simulated time until the last rank has finished.
  double wall_us = 0;
};

// Replays the trace in the simulator. Returns the errors of PlanReplay, and kUnsupported if the system has no
// time for one of the calls.
Result<SimulatedReplay> ReplayInSimulator(const Trace& trace, const NamedSystem& system,
                                          const TraceJobOptions& options);

// The name in reports: "dgx-a100 (simulated)".
std::string SimulatedLibrary(const NamedSystem& system);

}  // namespace dynamiccl
