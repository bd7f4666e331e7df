// SPDX-License-Identifier: Apache-2.0
// Runs a job in virtual time: ranks compute, collectives wait for their last rank and for the earlier ones of
// their communicator, share links with those of others, and hold up the ranks that wait for them.
#pragma once

#include <cstdint>
#include <vector>

#include "src/base/status.h"
#include "src/simulator/simulated_job.h"

namespace dynamiccl {

struct CollectiveTiming {
  int64_t issued_ns = 0;   // by this rank
  int64_t started_ns = 0;  // all ranks were there, and the communicator was free
  int64_t ended_ns = 0;
  int64_t stalled_ns = 0;  // this rank waited for it
};

struct RankTiming {
  int64_t finished_ns = 0;  // the last action, or the last collective if that is later
  int64_t compute_ns = 0;
  int64_t stalled_ns = 0;                     // exposed communication
  std::vector<CollectiveTiming> collectives;  // by number in the rank's program
};

struct SimulationOptions {
  std::vector<int32_t> observed_ranks = {0};
  bool ranks_apart = false;  // without taking equal ranks together: the same result, slower
};

struct SimulationResult {
  int64_t finished_ns = 0;  // of the last rank
  std::vector<RankTiming> observed;
  size_t rank_classes = 0;
  uint64_t collectives = 0;  // of all communicators
  double port_bytes = 0;     // through all ports and all nodes' networks, as their links counted them
  double network_bytes = 0;
};

// Equal input gives equal results on every machine. Errors: kInvalidArgument where the job contradicts itself
// (a collective that not all its ranks issue, with rank and number), or numbers are out of their ranges.
Result<SimulationResult> Simulate(const SimulatedJob& job, const SimulationOptions& options = {});

}  // namespace dynamiccl
