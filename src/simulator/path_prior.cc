// SPDX-License-Identifier: Apache-2.0
// NCCL's tables as prior costs. See path_prior.h.
#include "src/simulator/path_prior.h"

namespace dynamiccl {
namespace {

// GB/s inside a node and between nodes, to which the shares refer.
constexpr double kNode = 200;
constexpr double kNetwork = 20;

// One algorithm. Columns: LL, LL128, Simple.
struct Row {
  Algorithm algorithm;
  double base_us[kProtocols];
  double intra_us[kProtocols];
  double inter_us[kProtocols];
  double share[kProtocols];  // of the bus
};

// In PAT's row intra_us is its work for each rank.
constexpr Row kRows[] = {{Algorithm::kTree, {6.8, 14, 8.4}, {0.6, 1.25, 4}, {5, 8.5, 14}, {0.25, 0.8, 0.9}},
                         {Algorithm::kRing, {6.6, 14, 8.4}, {0.6, 1.9, 3.4}, {2.7, 4, 14}, {0.45, 0.9, 1}},
                         {Algorithm::kNvls, {0, 0, 8}, {0, 0, 25}, {0, 0, 18}, {0, 0, 0.85}},
                         {Algorithm::kNvlsTree, {0, 0, 8}, {0, 0, 25}, {0, 0, 20.9}, {0, 0, 0.85}},
                         {Algorithm::kPat, {0, 0, 8}, {0, 0, 2.8}, {0, 0, 4}, {0, 0, 0.75}}};

}  // namespace

PathCosts PriorCosts(Algorithm algorithm, Protocol protocol) {
  const auto p = static_cast<size_t>(protocol);
  for (const Row& row : kRows) {
    if (row.algorithm != algorithm) continue;
    return {.base_us = row.base_us[p],
            .intra_hop_us = row.intra_us[p],
            .inter_hop_us = row.inter_us[p],
            .intra_gbps = row.share[p] * kNode,
            .inter_gbps = row.share[p] * kNetwork,
            .channel_gbps = row.share[p] * kNetwork};
  }
  return {};
}

}  // namespace dynamiccl
