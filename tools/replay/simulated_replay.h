// SPDX-License-Identifier: Apache-2.0
// A replay in virtual time: the plan that ranks would issue over a library (traces/replay/replay_plan.h),
// issued to the event simulator.
#pragma once

#include <vector>

#include "tools/simulate/described_system.h"
#include "tools/simulate/trace_program.h"

namespace dynamiccl {

struct NamedSystem {
  System system;
  double network_gbps = 0;  // of a node, where the description says so; 0: what the system's paths carry
};
// A described system by its name, else a system file (docs/formats/system.md).
Result<NamedSystem> FindSystem(const std::string& name_or_path);

struct SimulatedReplay {
  ReplayPlan plan;                        // rank 0's
  std::vector<CollectiveConfig> configs;  // of its calls, in the plan's order
  std::vector<double> group_us;           // per group of the plan, in the stream, on rank 0
  std::vector<uint64_t> operations;       // OperationHash of what each rank issued
  double wall_us = 0;                     // until the last rank is done
};

// Errors: those of PlanReplay, and kUnsupported for a call that the system knows no path for.
Result<SimulatedReplay> ReplayInSimulator(const Trace& trace, const NamedSystem& system,
                                          const TraceJobOptions& options);

// What stands for the library in reports: "dgx-a100 (simulated)".
std::string SimulatedLibrary(const NamedSystem& system);

}  // namespace dynamiccl
