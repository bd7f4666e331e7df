// SPDX-License-Identifier: Apache-2.0
// Runs a job in virtual time. Ranks compute; a collective waits for its last rank and for the earlier
// collectives of its communicator; it shares links with the collectives of other communicators; and it holds
// up the ranks that wait for it.
#pragma once

#include <cstdint>
#include <vector>

#include "src/base/status.h"
#include "src/simulator/simulated_job.h"

namespace dynamiccl {

// Describes one collective as one rank saw it. Times are nanoseconds from the start of the job.
struct CollectiveTiming {
  int64_t issued_ns = 0;   // when this rank issued it
  int64_t started_ns = 0;  // all ranks had arrived and the communicator was free
  int64_t ended_ns = 0;
  int64_t stalled_ns = 0;  // time for which this rank waited for it
};

// Holds the timing of one observed rank.
struct RankTiming {
  int64_t finished_ns = 0;  // end of its last action, or of its last collective if that is later
  int64_t compute_ns = 0;
  int64_t stalled_ns = 0;                     // exposed communication
  std::vector<CollectiveTiming> collectives;  // by the collective's number in the rank's program
};

// Options of a simulation: what to observe, and how to simulate.
struct SimulationOptions {
  // Ranks whose timings are returned; each must be a rank of the job.
  std::vector<int32_t> observed_ranks = {0};
  bool ranks_apart = false;  // simulate every rank separately: the same result, slower
};

// Holds the totals of the job and the timings of the observed ranks.
struct SimulationResult {
  int64_t finished_ns = 0;  // when the last rank finished
  std::vector<RankTiming> observed;
  size_t rank_classes = 0;
  uint64_t collectives = 0;  // number of collectives of all communicators
  double port_bytes = 0;     // bytes that all ports carried; below: bytes that all nodes' networks carried
  double network_bytes = 0;
};

// Simulates a job. Equal input gives equal results on every machine. Returns kInvalidArgument if numbers are
// out of their ranges or the job contradicts itself: if not all ranks of a collective issue it, the error
// names rank and number.
Result<SimulationResult> Simulate(const SimulatedJob& job, const SimulationOptions& options = {});

}  // namespace dynamiccl
