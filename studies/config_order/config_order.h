// SPDX-License-Identifier: Apache-2.0
// Compares the order in which two sweeps rank the configs.
//
// For cells that correspond, every pair of arms that both sweeps measured is concordant, discordant or, where
// either sweep sees no difference, a tie. Kendall's tau sums up all pairs (Kendall 1938); leaving ties out
// makes it Goodman and Kruskal's gamma.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "src/base/status.h"
#include "tools/report/choice_comparison.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

// Which cells of the two files correspond, and what counts as a difference.
struct OrderOptions {
  // Pairs of a topology of the first file and the topology of the second file that corresponds to it.
  std::vector<std::pair<std::string, std::string>> topologies;
  // A size of the second file times this factor is the corresponding size of the first. Links that are scaled
  // down reach the same balance of latency and bandwidth at other sizes.
  double size_scale = 1;
  // Ratios of medians that differ from 1 by less than this share count as ties.
  double tie = 0.05;
};

// One pair of arms in one pair of cells. An arm is an algorithm and a protocol at its best number of
// channels. If either sweep does not state protocols, an arm is the algorithm alone at its best protocol.
struct ArmPair {
  // Topology in the first file.
  std::string topology;
  Collective collective = Collective::kAllReduce;
  // Size of the cell in the first file.
  uint64_t bytes = 0;
  // Size of the cell in the second file.
  uint64_t other_bytes = 0;
  std::string arm;
  std::string other_arm;
  // Time of `arm` over that of `other_arm` in the first file.
  double ratio = 1;
  // The same ratio in the second file.
  double other_ratio = 1;
};

// Result of a comparison: the pairs by kind, and how many cells took part.
struct OrderAgreement {
  // Number of pairs of cells that share at least two arms.
  int cells = 0;
  // Number of cells of the second file's named topologies for which the first file has no size near enough.
  int unmatched_cells = 0;
  std::vector<ArmPair> concordant;
  std::vector<ArmPair> discordant;
  std::vector<ArmPair> ties;

  // From -1 (reversed) to 1 (the same order); 0 when no pair differs in both sweeps.
  double Tau() const;
};

// Compares all corresponding cells. If a named topology is in neither file, the result is an error
// (kNotFound) whose hint lists the topologies that exist.
Result<OrderAgreement> CompareOrder(const MeasurementFile& first, const MeasurementFile& second,
                                    const OrderOptions& options);

}  // namespace dynamiccl
