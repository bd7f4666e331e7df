// SPDX-License-Identifier: Apache-2.0
// What a collective costs on a system, in closed form: no events, a few multiplications a call. What NCCL
// would pick is src/cost_model's matter; here every config has a price, and so has leaving the choice open.
//
//   time = (latency + volume / bus) * residual
//
// with, for n ranks on N nodes of L = n / N ranks, a = intra_hop_us and b = inter_hop_us:
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
// and bus = min(intra_gbps, inter_gbps if N > 1, channels * channel_gbps). The counts of steps are those of
// NCCL's rings and double binary trees (src/graph/tuning.cc, 2.30.7); PAT's `a` is its local work for each
// rank. NVLS is for one node, NVLSTree for several of more than one rank. CollNet has no price.
#pragma once

#include <cstdint>
#include <vector>

#include "src/collective/size_class.h"
#include "src/simulator/system.h"

namespace dynamiccl {

// How often each constant of a path counts in a call's time.
struct PathTerms {
  double intra_hops = 0;
  double inter_hops = 0;
  double volume = 0;  // times NCCL's total bytes; 0: the algorithm cannot do this
};
PathTerms TermsOf(Collective collective, Algorithm algorithm, int n_ranks, int n_nodes);

// Microseconds by the formulas alone; -1 for a path that the system does not know or that the algorithm
// cannot do. `channels` 0: all of the system's.
double FormulaTime(const System& system, const PathTerms& terms, const PathCosts& costs, int n_nodes,
                   uint64_t bytes, int channels);

// Prices for one shape of communicator, made ready once; then each question is cheap. Immutable: any number
// of threads may ask.
class CollectiveTimes {
 public:
  enum class Residuals { kApplied, kIgnored };
  // `n_nodes` 0: as many as the ranks fill.
  CollectiveTimes(const System& system, int n_ranks, int n_nodes = 0,
                  Residuals residuals = Residuals::kApplied);

  // Microseconds from the last rank's arrival to the end; 0 for a lone rank. `bytes` is NCCL's total. A
  // config without algorithm, or without protocol, is the library's choice: the cheapest known path. -1: no
  // path is known for it.
  double Microseconds(Collective collective, uint64_t bytes, const CollectiveConfig& config) const;
  // The cheapest known path with all channels, as the formulas and residuals see it; leaves NCCL alone where
  // none is known.
  CollectiveConfig Cheapest(Collective collective, uint64_t bytes) const;

 private:
  struct Path {
    CollectiveConfig config;
    double latency_us = 0;
    double us_per_byte = 0;          // with all channels
    double channel_us_per_byte = 0;  // with one; 0: as with all
    int row = -1;                    // of factors_
  };
  using Factors = std::vector<float>;  // by size class

  void AddPath(const System& system, Collective collective, Algorithm algorithm, Protocol protocol);
  void AddResiduals(const System& system, Collective collective);
  int RowOf(const System& system, Collective collective, const CollectiveConfig& config);
  double Factor(int row, SizeClass size_class) const {
    return row < 0 ? 1.0 : static_cast<double>(factors_[static_cast<size_t>(row)][size_class.index]);
  }

  int n_ranks_;
  int n_nodes_;
  std::vector<Path> paths_[kTunableCollectives];
  int open_rows_[kTunableCollectives][kAlgorithms + 1];  // of what is left open; the last: everything
  std::vector<Factors> factors_;
};

}  // namespace dynamiccl
