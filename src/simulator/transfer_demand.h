// SPDX-License-Identifier: Apache-2.0
// Computes what collectives ask of a system's links for the event-driven simulation. The time by the closed
// form (closed_form.h) is split into latency and transfer; on idle links the simulation adds the two up to
// the same time.
#pragma once

#include <map>
#include <utility>

#include "src/base/status.h"
#include "src/collective/collective_config.h"
#include "src/simulator/closed_form.h"
#include "src/simulator/simulated_job.h"

namespace dynamiccl {

// Returns the GB/s of the fastest path, inside a node and between nodes. The first is what a rank's port can
// carry; the second is what a node can carry if one communicator uses all its network links.
double PortGbps(const System& system);
double NetworkGbps(const System& system);

// Computes demands and keeps the prices of each shape of communicator for later questions. One thread at a
// time. The system must outlive it.
class SystemDemands {
 public:
  explicit SystemDemands(const System& system) : system_(system) {}

  // Returns the demand of one collective. `bytes` is NCCL's total. If parts of `config` are undefined, or the
  // collective does not have the algorithm, the library chooses the cheapest path. Sends, receives and
  // SendRecv are one hop of the ring; AlltoAll, Scatter and Gather cost ExchangeTime. If the system's `part`
  // is an end of intervals, so is the time. Returns kUnsupported if the system knows no path, or states no
  // interval where one is asked for.
  Result<TransferDemand> Of(Collective collective, uint64_t bytes, CollectiveConfig config, int n_ranks,
                            int n_nodes);

 private:
  const CollectiveTimes& TimesOf(int n_ranks, int n_nodes);
  Result<TransferDemand> OfExchange(Collective collective, uint64_t bytes, int n_ranks, int n_nodes) const;
  // The factor on a time at the asked end of the intervals; 1 for the prediction itself.
  Result<double> IntervalFactor(Collective collective, uint64_t bytes, int n_ranks, int n_nodes) const;

  const System& system_;
  std::map<std::pair<int, int>, CollectiveTimes> times_;
};

}  // namespace dynamiccl
