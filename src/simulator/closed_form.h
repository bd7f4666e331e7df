// SPDX-License-Identifier: Apache-2.0
// This file computes what a collective costs on a system in closed form: no events, and a few multiplications
// for each call. Which configuration NCCL would pick is computed by src/cost_model; here every configuration
// has a price, and so does a call whose configuration is left open.
//
//   time = (latency + volume / bus) * residual
//
// For n ranks on N nodes of L = n / N ranks, with a = intra_hop_us and b = inter_hop_us:
//
//   algorithm   collective   latency beside base_us               volume, in total bytes
//   Ring        AllReduce    (2(n-1) - 2(N-1)) a + 2(N-1) b       2(n-1)/n
//   Ring        AG, RS       ((n-1) - (N-1)) a + (N-1) b          (n-1)/n
//   Ring        Bc, Rd       ((n-1) - (N-1)) a + (N-1) b          1
//   Tree        AllReduce    2((L-1) a + ceil(log2 N) b)          2
//   PAT         AG, RS       (n-1) a + ceil(log2 N) b             (n-1)/n         only where n = N
//   NVLS        AR, AG, RS   a                                    2(n-1)/n; (n-1)/n
//   NVLSTree    AllReduce    a + 2 ceil(log2 N) b                 2(n-1)/n
//
// The bus is min(intra_gbps, inter_gbps * min(1, L / network_ranks) if N > 1, channels * channel_gbps). The
// numbers of steps are those of NCCL's rings and double binary trees (src/graph/tuning.cc, 2.30.7). PAT's `a`
// is its local work for each rank. NVLS is for one node, NVLSTree for several nodes of more than one rank.
// CollNet has no price.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/collective/size_class.h"
#include "src/simulator/system.h"

namespace dynamiccl {

// Counts how often each constant of a path enters the time of a call.
struct PathTerms {
  double intra_hops = 0;
  double inter_hops = 0;
  double volume = 0;  // times NCCL's total bytes; 0: the algorithm cannot do this
};
// Returns the row of the table above for one collective and algorithm.
PathTerms TermsOf(Collective collective, Algorithm algorithm, int n_ranks, int n_nodes);

// Returns the microseconds by the formula alone, without residuals; -1 if the system does not know the path
// or the algorithm cannot do the collective. `channels` 0 means all channels of the system.
double FormulaTime(const System& system, const PathTerms& terms, const PathCosts& costs, int n_ranks,
                   int n_nodes, uint64_t bytes, int channels);

// The cost of AlltoAll, Scatter and Gather. The library builds them from sends and receives, which run as a
// pairwise exchange: one message to each other rank. For a call of B total bytes and each path of Ring, with
// the names above:
//
//   collective        latency beside base_us   bytes of the busiest port   bytes that leave the busiest node
//   AlltoAll          (L-1) a + (n-L) b        (n-1)/n B                   L (n-L)/n B
//   Scatter, Gather   (L-1) a + (n-L) b        (n-1)/n B, at the root      (n-L)/n B, at the root's node
//
// The transfer takes as long as the slower of the two: the port has intra_gbps, the node has inter_gbps *
// min(1, L / network_ranks). Each message pays a latency and all bytes pass one after the other, as in (p-1)
// alpha + n beta of Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication Operations in
// MPICH" (2005).
struct ExchangeCost {
  double latency_us = 0;
  double transfer_us = 0;
  double port_bytes = 0;
  double node_bytes = 0;
};
// Returns the cost on the cheapest path of Ring; nothing where the system knows none.
std::optional<ExchangeCost> ExchangeTime(const System& system, Collective collective, uint64_t bytes,
                                         int n_ranks, int n_nodes);

// Prices for one shape of communicator. The constructor prepares them once; then each question is cheap.
// Immutable, so any number of threads may ask. It copies what it needs of the system.
class CollectiveTimes {
 public:
  enum class Residuals { kApplied, kIgnored };
  // `n_nodes` 0 means the fewest nodes that hold the ranks.
  CollectiveTimes(const System& system, int n_ranks, int n_nodes = 0,
                  Residuals residuals = Residuals::kApplied);

  // Microseconds from the arrival of the last rank to the end; 0 for a lone rank. `bytes` is NCCL's total. A
  // configuration without algorithm or without protocol is the library's choice: the cheapest known path. -1
  // when no path is known.
  double Microseconds(Collective collective, uint64_t bytes, const CollectiveConfig& config) const;
  // Returns the cheapest known path with all channels, by formulas and residuals; kLeaveNcclAlone where none
  // is known.
  CollectiveConfig Cheapest(Collective collective, uint64_t bytes) const;

 private:
  // The price of one pair of algorithm and protocol: a straight line in the bytes, times a factor by size
  // class.
  struct Path {
    CollectiveConfig config;
    double latency_us = 0;
    double us_per_byte = 0;          // time per byte with all channels
    double channel_us_per_byte = 0;  // time per byte with one channel; 0: the same as with all channels
    int row = -1;                    // row of this path in factors_; -1: no residual
  };
  using Factors = std::vector<float>;  // residual factors by size class

  // Adds a path if the system knows it and the algorithm can do the collective.
  void AddPath(const System& system, Collective collective, Algorithm algorithm, Protocol protocol);
  // Evaluates the residuals of a collective's paths and open choices.
  void AddResiduals(const System& system, Collective collective);
  // Adds a row of factors for a configuration; -1 when it has no residual.
  int RowOf(const System& system, Collective collective, const CollectiveConfig& config);
  double Factor(int row, SizeClass size_class) const {
    return row < 0 ? 1.0 : static_cast<double>(factors_[static_cast<size_t>(row)][size_class.index]);
  }

  int n_ranks_;
  int n_nodes_;
  std::vector<Path> paths_[kTunableCollectives];
  // Row of factors_ for a choice that is left to the library, by collective and algorithm. In the last column
  // the algorithm is left open too.
  int open_rows_[kTunableCollectives][kAlgorithms + 1];
  std::vector<Factors> factors_;
};

}  // namespace dynamiccl
