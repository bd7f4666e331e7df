// SPDX-License-Identifier: Apache-2.0
// What collectives ask of a system's links: the closed form (closed_form.h) taken apart for the event-driven
// simulation, which on idle links puts the same time together again.
#pragma once

#include <map>
#include <utility>

#include "src/base/status.h"
#include "src/collective/collective_config.h"
#include "src/simulator/closed_form.h"
#include "src/simulator/simulated_job.h"

namespace dynamiccl {

// The fastest path inside a node, and between nodes: what a port, and a node whose one communicator uses all
// its links, can carry. 10^9 bytes a second.
double PortGbps(const System& system);
double NetworkGbps(const System& system);

class SystemDemands {
 public:
  explicit SystemDemands(const System& system) : system_(system) {}

  // `bytes` is NCCL's total. The parts of `config` that are undefined, and an algorithm that the collective
  // does not have, are left to the library: the cheapest path. Send, Recv and SendRecv are one hop over the
  // ring. kUnsupported: the system knows no path for it.
  Result<TransferDemand> Of(Collective collective, uint64_t bytes, CollectiveConfig config, int n_ranks,
                            int n_nodes);

 private:
  const CollectiveTimes& TimesOf(int n_ranks, int n_nodes);

  const System& system_;
  std::map<std::pair<int, int>, CollectiveTimes> times_;
};

}  // namespace dynamiccl
