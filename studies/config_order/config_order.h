// SPDX-License-Identifier: Apache-2.0
// Do two sweeps order the configs alike? For cells that stand for each other, every pair of arms measured in
// both is concordant, discordant, or a tie where either sweep sees no difference. Kendall's tau over all
// pairs (Kendall 1938; ties left out: Goodman and Kruskal's gamma).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "src/base/status.h"
#include "tools/report/choice_comparison.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

struct OrderOptions {
  // Topologies of the first file and those of the second that they stand for.
  std::vector<std::pair<std::string, std::string>> topologies;
  // A size of the second file times this is the size of the first that stands for it: links that are scaled
  // down reach the same balance of latency and bandwidth at other sizes.
  double size_scale = 1;
  // Ratios of medians closer to 1 than this count as ties.
  double tie = 0.05;
};

// One pair of arms in one pair of cells. An arm is an algorithm and a protocol, at its best channel count;
// only the algorithm, at its best protocol, when either sweep does not tell the protocol.
struct ArmPair {
  std::string topology;  // of the first file
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;        // in the first file
  uint64_t other_bytes = 0;  // in the second
  std::string arm;
  std::string other_arm;
  double ratio = 1;        // time of `arm` over that of `other_arm` in the first file
  double other_ratio = 1;  // in the second
};

struct OrderAgreement {
  int cells = 0;            // pairs of cells that share two arms or more
  int unmatched_cells = 0;  // of the second file's named topologies: no size near enough in the first
  std::vector<ArmPair> concordant;
  std::vector<ArmPair> discordant;
  std::vector<ArmPair> ties;

  // From -1 (reversed) to 1 (the same order); 0 without pairs.
  double Tau() const;
};

// kNotFound names a topology that is in neither file.
Result<OrderAgreement> CompareOrder(const MeasurementFile& first, const MeasurementFile& second,
                                    const OrderOptions& options);

}  // namespace dynamiccl
