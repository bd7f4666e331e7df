// SPDX-License-Identifier: Apache-2.0
// The formulas of closed_form.h, and the table of prices for one shape of communicator. Residuals are
// evaluated once for each size class, so that a question costs a few multiplications.
#include "src/simulator/closed_form.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "src/collective/legal_configs.h"
#include "src/simulator/residual_surface.h"

namespace dynamiccl {
namespace {

// Bytes that pass in a microsecond at 1 GB/s.
constexpr double kBytesPerUsOfGbps = 1e3;

// Rounds up; 0 for values up to 1.
int CeilLog2(int value) {
  return value <= 1 ? 0 : std::bit_width(static_cast<unsigned>(value - 1));
}

// AllReduce passes the ring twice, all other collectives once. Broadcast and Reduce move all bytes over every
// link.
PathTerms RingTerms(Collective collective, int n_ranks, int n_nodes) {
  const int passes = collective == Collective::kAllReduce ? 2 : 1;
  const bool copies = collective == Collective::kBroadcast || collective == Collective::kReduce;
  const double share = copies ? 1.0 : static_cast<double>(n_ranks - 1) / n_ranks;
  return {.intra_hops = static_cast<double>(passes) * (n_ranks - n_nodes),
          .inter_hops = static_cast<double>(passes) * (n_nodes - 1),
          .volume = passes * share};
}

// Returns the microseconds that a byte takes on the slowest link.
double InverseBus(const System& system, const PathCosts& costs, int n_ranks, int n_nodes) {
  double gbps = costs.intra_gbps;
  if (n_nodes > 1 && costs.inter_gbps > 0) {
    const double reached = static_cast<double>(n_ranks) / n_nodes / system.network_ranks;
    gbps = std::min(gbps, costs.inter_gbps * std::min(1.0, reached));
  }
  return 1 / (kBytesPerUsOfGbps * gbps);
}

// Returns the microseconds of a call that do not depend on its size.
double Latency(const PathTerms& terms, const PathCosts& costs) {
  return costs.base_us + terms.intra_hops * costs.intra_hop_us + terms.inter_hops * costs.inter_hop_us;
}

}  // namespace

PathTerms TermsOf(Collective collective, Algorithm algorithm, int n_ranks, int n_nodes) {
  const double share = static_cast<double>(n_ranks - 1) / n_ranks;
  const bool reduces_all = collective == Collective::kAllReduce;
  const int depth = CeilLog2(n_nodes);
  switch (algorithm) {
    case Algorithm::kRing:
      return RingTerms(collective, n_ranks, n_nodes);
    case Algorithm::kTree:
      return {static_cast<double>(2 * (n_ranks / n_nodes - 1)), 2.0 * depth, 2};
    case Algorithm::kPat:
      if (n_nodes < 2 || n_ranks != n_nodes) return {};
      return {static_cast<double>(n_ranks - 1), static_cast<double>(depth), share};
    case Algorithm::kNvls:
      return {1, 0, n_nodes > 1 ? 0 : (reduces_all ? 2 : 1) * share};
    case Algorithm::kNvlsTree:
      return {1, 2.0 * depth, n_nodes > 1 && n_ranks > n_nodes ? 2 * share : 0};
    default:
      return {};
  }
}

double FormulaTime(const System& system, const PathTerms& terms, const PathCosts& costs, int n_ranks,
                   int n_nodes, uint64_t bytes, int channels) {
  if (!costs.known() || terms.volume <= 0) return -1;
  const int used = channels <= 0 ? system.max_channels : std::min(channels, system.max_channels);
  double inverse = InverseBus(system, costs, n_ranks, n_nodes);
  if (costs.channel_gbps > 0) {
    inverse = std::max(inverse, 1 / (kBytesPerUsOfGbps * costs.channel_gbps * used));
  }
  return Latency(terms, costs) + terms.volume * static_cast<double>(bytes) * inverse;
}

std::optional<ExchangeCost> ExchangeTime(const System& system, Collective collective, uint64_t bytes,
                                         int n_ranks, int n_nodes) {
  const double ranks_of_node = static_cast<double>(n_ranks) / n_nodes;
  const double part = static_cast<double>(bytes) / n_ranks;
  const double senders = collective == Collective::kAllToAll ? ranks_of_node : 1;
  const PathTerms terms{.intra_hops = ranks_of_node - 1, .inter_hops = n_ranks - ranks_of_node};
  ExchangeCost best;
  for (const PathCosts& costs : system.paths[static_cast<size_t>(Algorithm::kRing)]) {
    if (!costs.known()) continue;
    ExchangeCost cost{.latency_us = Latency(terms, costs),
                      .port_bytes = part * (n_ranks - 1),
                      .node_bytes = part * senders * terms.inter_hops};
    const double network = costs.inter_gbps > 0 ? costs.inter_gbps : costs.intra_gbps;
    const double reached = network * std::min(1.0, ranks_of_node / system.network_ranks);
    cost.transfer_us =
        std::max(cost.port_bytes / costs.intra_gbps, cost.node_bytes / reached) / kBytesPerUsOfGbps;
    const bool first = best.port_bytes == 0;
    if (first || cost.latency_us + cost.transfer_us < best.latency_us + best.transfer_us) best = cost;
  }
  return best.port_bytes > 0 ? std::optional(best) : std::nullopt;
}

CollectiveTimes::CollectiveTimes(const System& system, int n_ranks, int n_nodes, Residuals residuals)
    : n_ranks_(n_ranks), n_nodes_(n_nodes > 0 ? n_nodes : system.NodesFor(n_ranks)) {
  for (auto& rows : open_rows_) std::fill(std::begin(rows), std::end(rows), -1);
  if (n_ranks_ < 2) return;
  for (int c = 0; c < kTunableCollectives; ++c) {
    const auto collective = static_cast<Collective>(c);
    const ConfigMask legal = NcclConfigs(collective);
    for (int a = 0; a < kAlgorithms; ++a) {
      for (int p = 0; p < kProtocols; ++p) {
        const auto algorithm = static_cast<Algorithm>(a);
        const auto protocol = static_cast<Protocol>(p);
        if (legal.test(ConfigIndex(algorithm, protocol))) AddPath(system, collective, algorithm, protocol);
      }
    }
    // Residuals were measured on full nodes. They say nothing about communicators that use only a part of
    // each node.
    const bool fills_nodes = n_nodes_ == system.NodesFor(n_ranks_);
    if (residuals == Residuals::kApplied && fills_nodes && !system.residuals.empty())
      AddResiduals(system, collective);
  }
}

// If the path has a channel_gbps, fewer channels make it slower, so the time per byte is also kept for a
// single channel.
void CollectiveTimes::AddPath(const System& system, Collective collective, Algorithm algorithm,
                              Protocol protocol) {
  const PathCosts& costs = system.path(algorithm, protocol);
  const PathTerms terms = TermsOf(collective, algorithm, n_ranks_, n_nodes_);
  if (!costs.known() || terms.volume <= 0) return;
  Path path{.config = {algorithm, protocol, 0}, .latency_us = Latency(terms, costs)};
  path.us_per_byte = terms.volume * InverseBus(system, costs, n_ranks_, n_nodes_);
  if (costs.channel_gbps > 0) {
    path.channel_us_per_byte = terms.volume / (kBytesPerUsOfGbps * costs.channel_gbps);
    path.us_per_byte = std::max(path.us_per_byte, path.channel_us_per_byte / system.max_channels);
  }
  paths_[static_cast<size_t>(collective)].push_back(path);
}

void CollectiveTimes::AddResiduals(const System& system, Collective collective) {
  const auto c = static_cast<size_t>(collective);
  // All rows are computed before any is used. Residuals build on the formulas alone, and Microseconds answers
  // by the formulas alone until the rows are set.
  std::vector<int> rows;
  for (const Path& path : paths_[c]) rows.push_back(RowOf(system, collective, path.config));
  int open[kAlgorithms + 1];
  for (int a = 0; a <= kAlgorithms; ++a) {
    const auto algorithm = a < kAlgorithms ? static_cast<Algorithm>(a) : Algorithm::kUndefined;
    open[a] = RowOf(system, collective, {algorithm, Protocol::kUndefined, 0});
  }
  for (size_t i = 0; i < rows.size(); ++i) paths_[c][i].row = rows[i];
  std::copy(std::begin(open), std::end(open), open_rows_[c]);
}

int CollectiveTimes::RowOf(const System& system, Collective collective, const CollectiveConfig& config) {
  const ResidualSurface surface(system, collective, config);
  if (surface.empty()) return -1;
  Factors factors(kSizeClasses);
  for (int i = 0; i < kSizeClasses; ++i) {
    const uint64_t bytes = std::max<uint64_t>(1, LowerBound({static_cast<uint8_t>(i)}));
    factors[static_cast<size_t>(i)] = static_cast<float>(std::exp(surface.At(*this, n_ranks_, bytes)));
  }
  factors_.push_back(std::move(factors));
  return static_cast<int>(factors_.size()) - 1;
}

// The formula's time is multiplied by a residual. A given configuration has its own residual. Where the
// choice is left to NCCL, the cheapest path is multiplied by the residual of NCCL's choices.
double CollectiveTimes::Microseconds(Collective collective, uint64_t bytes,
                                     const CollectiveConfig& config) const {
  if (n_ranks_ < 2) return 0;
  const auto c = static_cast<size_t>(collective);
  if (c >= kTunableCollectives) return -1;
  const bool any_algorithm = config.algorithm == Algorithm::kUndefined;
  const bool open = config.leaves_nccl_alone();
  const SizeClass size_class = SizeClassOf(bytes);
  double best = -1;
  for (const Path& path : paths_[c]) {
    if (!any_algorithm && path.config.algorithm != config.algorithm) continue;
    if (!open && path.config.protocol != config.protocol) continue;
    const bool fewer = config.channels > 0 && path.channel_us_per_byte > 0;
    const double us_per_byte =
        fewer ? std::max(path.us_per_byte, path.channel_us_per_byte / config.channels) : path.us_per_byte;
    double time = path.latency_us + us_per_byte * static_cast<double>(bytes);
    if (!open) time *= Factor(path.row, size_class);
    if (best < 0 || time < best) best = time;
  }
  if (!open || best < 0) return best;
  const auto row = any_algorithm ? kAlgorithms : static_cast<int>(config.algorithm);
  return best * Factor(open_rows_[c][row], size_class);
}

CollectiveConfig CollectiveTimes::Cheapest(Collective collective, uint64_t bytes) const {
  CollectiveConfig best = kLeaveNcclAlone;
  double best_time = 0;
  if (n_ranks_ < 2 || static_cast<int>(collective) >= kTunableCollectives) return best;
  for (const Path& path : paths_[static_cast<size_t>(collective)]) {
    const double time = Microseconds(collective, bytes, path.config);
    if (!best.leaves_nccl_alone() && time >= best_time) continue;
    best = path.config;
    best_time = time;
  }
  return best;
}

}  // namespace dynamiccl
