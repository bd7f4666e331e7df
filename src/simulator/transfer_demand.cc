// SPDX-License-Identifier: Apache-2.0
// Splits the time of a collective into latency and transfer. The residual's factor applies to both alike.
#include "src/simulator/transfer_demand.h"

#include <algorithm>
#include <cmath>

#include "src/collective/legal_configs.h"
#include "src/simulator/stated_interval.h"

namespace dynamiccl {
namespace {

constexpr double kNsOfUs = 1e3;

// Returns the cheapest configuration that has the given parts of `config`.
CollectiveConfig Complete(const CollectiveTimes& times, Collective collective, uint64_t bytes,
                          const CollectiveConfig& config) {
  const ConfigMask legal = NcclConfigs(collective);
  CollectiveConfig best = kLeaveNcclAlone;
  double best_time = -1;
  for (int p = 0; p < kProtocols; ++p) {
    const auto protocol = static_cast<Protocol>(p);
    if (config.protocol != Protocol::kUndefined && config.protocol != protocol) continue;
    if (!legal.test(ConfigIndex(config.algorithm, protocol))) continue;
    const CollectiveConfig candidate{config.algorithm, protocol, config.channels};
    const double time = times.Microseconds(collective, bytes, candidate);
    if (time < 0 || (best_time >= 0 && time >= best_time)) continue;
    best = candidate;
    best_time = time;
  }
  return best;
}

// Returns how wide the interval of one call is; kUnsupported where the system does not state it.
Result<double> WidthOf(const System& system, Collective collective, uint64_t bytes, int n_ranks,
                       int n_nodes) {
  if (const auto width = LogWidth(system, collective, bytes, n_ranks, n_nodes)) return *width;
  return MakeError(ErrorKind::kUnsupported, "{} states no interval for {} on {} ranks of {} nodes",
                   system.name, Name(collective), n_ranks, n_nodes);
}

tl::unexpected<Error> NoPath(const System& system, Collective collective, int n_ranks) {
  return WithHint(MakeError(ErrorKind::kUnsupported, "system {}: no path is known for {} on {} ranks",
                            system.name, Name(collective), n_ranks),
                  "give it one: a [[path]] of Ring and Simple does for every collective");
}

}  // namespace

double PortGbps(const System& system) {
  double gbps = 0;
  for (const auto& row : system.paths)
    for (const PathCosts& path : row) gbps = std::max({gbps, path.intra_gbps, path.inter_gbps});
  return gbps;
}

double NetworkGbps(const System& system) {
  double gbps = 0;
  for (const auto& row : system.paths)
    for (const PathCosts& path : row)
      gbps = std::max(gbps, path.inter_gbps > 0 ? path.inter_gbps : path.intra_gbps);
  return gbps;
}

// Returns the prices for one shape of communicator; they are prepared once for each shape.
const CollectiveTimes& SystemDemands::TimesOf(int n_ranks, int n_nodes) {
  const auto known = times_.find({n_ranks, n_nodes});
  if (known != times_.end()) return known->second;
  return times_.emplace(std::pair(n_ranks, n_nodes), CollectiveTimes(system_, n_ranks, n_nodes))
      .first->second;
}

Result<double> SystemDemands::IntervalFactor(Collective collective, uint64_t bytes, int n_ranks,
                                             int n_nodes) const {
  if (system_.part == IntervalPart::kPrediction) return 1;
  DYNAMICCL_TRY(const double width, WidthOf(system_, collective, bytes, n_ranks, n_nodes));
  return std::exp(static_cast<int>(system_.part) * width);
}

Result<TransferDemand> SystemDemands::OfExchange(Collective collective, uint64_t bytes, int n_ranks,
                                                 int n_nodes) const {
  const auto cost = ExchangeTime(system_, collective, bytes, n_ranks, n_nodes);
  if (!cost) return NoPath(system_, collective, n_ranks);
  DYNAMICCL_TRY(const double factor, IntervalFactor(collective, bytes, n_ranks, n_nodes));
  TransferDemand demand;
  demand.latency_ns = std::llround(cost->latency_us * factor * kNsOfUs);
  demand.transfer_ns = std::llround(cost->transfer_us * factor * kNsOfUs);
  demand.port_bytes = cost->port_bytes;
  demand.network_bytes = cost->node_bytes;
  return demand;
}

Result<TransferDemand> SystemDemands::Of(Collective collective, uint64_t bytes, CollectiveConfig config,
                                         int n_ranks, int n_nodes) {
  if (n_ranks > 1 && bytes > 0 && collective >= Collective::kAllToAll)
    return OfExchange(collective, bytes, n_ranks, n_nodes);
  const Collective asked = collective;
  if (static_cast<int>(collective) >= kTunableCollectives) {
    collective = Collective::kBroadcast;
    config = {Algorithm::kRing, Protocol::kUndefined, 0};
    n_ranks = 2;
    n_nodes = std::min(n_nodes, 2);
  }
  if (n_ranks < 2 || bytes == 0) return TransferDemand{};
  const CollectiveTimes& times = TimesOf(n_ranks, n_nodes);
  const bool open = config.algorithm == Algorithm::kUndefined;
  CollectiveConfig chosen = open ? kLeaveNcclAlone : Complete(times, collective, bytes, config);
  const bool left = chosen.leaves_nccl_alone();
  if (left) chosen = times.Cheapest(collective, bytes);
  // If the choice is left to the library, the residual of the library's own choice counts.
  double us = times.Microseconds(collective, bytes, left ? kLeaveNcclAlone : chosen);
  if (chosen.leaves_nccl_alone() || us < 0) return NoPath(system_, collective, n_ranks);
  DYNAMICCL_TRY(const double factor, IntervalFactor(asked, bytes, n_ranks, n_nodes));
  us *= factor;
  const PathTerms terms = TermsOf(collective, chosen.algorithm, n_ranks, n_nodes);
  const PathCosts& costs = system_.path(chosen.algorithm, chosen.protocol);
  const double formula = FormulaTime(system_, terms, costs, n_ranks, n_nodes, bytes, chosen.channels);
  const double latency =
      us * FormulaTime(system_, terms, costs, n_ranks, n_nodes, 0, chosen.channels) / formula;
  TransferDemand demand;
  demand.latency_ns = std::llround(latency * kNsOfUs);
  demand.transfer_ns = std::llround(us * kNsOfUs) - demand.latency_ns;
  demand.port_bytes = terms.volume * static_cast<double>(bytes);
  demand.network_bytes = n_nodes > 1 ? demand.port_bytes : 0;
  return demand;
}

}  // namespace dynamiccl
