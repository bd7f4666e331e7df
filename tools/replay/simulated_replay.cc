// SPDX-License-Identifier: Apache-2.0
// Simulates all ranks and converts the simulated times into the form of a real replay's result.
#include "tools/replay/simulated_replay.h"

#include <algorithm>
#include <numeric>

namespace dynamiccl {
namespace {

// Returns the times that marks in a stream would give. A group begins when it has been issued and the stream
// of its communicator has reached it.
std::vector<double> GroupTimes(const ReplayPlan& plan, const std::vector<CollectiveTiming>& calls) {
  std::vector<int64_t> stream_free(plan.communicators.size(), 0);
  std::vector<double> microseconds;
  size_t next = 0;
  for (const ReplayGroup& group : plan.groups) {
    int64_t& free = stream_free[group.communicator];
    const int64_t begin = std::max(free, calls[next].issued_ns);
    for (size_t i = 0; i < group.calls.size(); ++i) free = std::max(free, calls[next++].ended_ns);
    microseconds.push_back(static_cast<double>(free - begin) * 1e-3);
  }
  return microseconds;
}

}  // namespace

Result<NamedSystem> FindSystem(const std::string& name_or_path) {
  DYNAMICCL_TRY(System system, SystemNamed(name_or_path));
  const DescribedSystem* const described = FindDescribedSystem(name_or_path);
  return NamedSystem{std::move(system), described == nullptr ? 0 : described->network_gbps};
}

Result<SimulatedReplay> ReplayInSimulator(const Trace& trace, const NamedSystem& system,
                                          const TraceJobOptions& options) {
  DYNAMICCL_TRY(TraceJob job, JobOfTrace(trace, system.system, options));
  if (system.network_gbps > 0) job.job.network_gbps = system.network_gbps;
  SimulationOptions watched;
  watched.observed_ranks.resize(static_cast<size_t>(job.job.n_ranks));
  std::iota(watched.observed_ranks.begin(), watched.observed_ranks.end(), 0);
  DYNAMICCL_TRY(const SimulationResult result, Simulate(job.job, watched));
  SimulatedReplay replay;
  for (size_t rank = 0; rank < result.observed.size(); ++rank)
    replay.operations.push_back(OperationHash(SimulatedCalls(job.PlanOf(rank), result.observed[rank])));
  replay.plan = std::move(job.plans[0]);
  replay.configs = std::move(job.configs[0]);
  replay.group_us = GroupTimes(replay.plan, result.observed[0].collectives);
  replay.wall_us = static_cast<double>(result.finished_ns) * 1e-3;
  return replay;
}

std::string SimulatedLibrary(const NamedSystem& system) {
  return fmt::format("{} (simulated)", system.system.name);
}

}  // namespace dynamiccl
