// SPDX-License-Identifier: Apache-2.0
// This file says what collectives ask of a system's links: the closed form (closed_form.h), split into
// latency and transfer for the event-driven simulation. On idle links the simulation puts the same time
// together again.
#pragma once

#include <map>
#include <utility>

#include "src/base/status.h"
#include "src/collective/collective_config.h"
#include "src/simulator/closed_form.h"
#include "src/simulator/simulated_job.h"

namespace dynamiccl {

// Returns GB/s of the fastest path inside a node, and between nodes: what a port can carry, and what a node
// can carry whose one communicator uses all its links.
double PortGbps(const System& system);
double NetworkGbps(const System& system);

// Computes demands and keeps the prices of each shape of communicator for later questions. One thread at a
// time. The system must outlive it.
class SystemDemands {
 public:
  explicit SystemDemands(const System& system) : system_(system) {}

  // Returns the demand of one collective. `bytes` is NCCL's total. Undefined parts of `config`, and an
  // algorithm that the collective does not have, are left to the library: the cheapest path. Send, Recv and
  // SendRecv are one hop over the ring. kUnsupported when the system knows no path.
  Result<TransferDemand> Of(Collective collective, uint64_t bytes, CollectiveConfig config, int n_ranks,
                            int n_nodes);

 private:
  const CollectiveTimes& TimesOf(int n_ranks, int n_nodes);

  const System& system_;
  std::map<std::pair<int, int>, CollectiveTimes> times_;
};

}  // namespace dynamiccl
