// SPDX-License-Identifier: Apache-2.0
// How much there is to win over the library's own choice, without flattery: the best arm is picked on one
// half of the repeats and timed on the other, both ways round, and told apart from what repeats of one arm
// differ by.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "studies/headroom/timed_arms.h"

namespace dynamiccl {

// Octaves: 0.1 is 7 % faster than the default.
struct CellHeadroom {
  double gain = 0;   // log2(default / picked), each timed where it was not picked, mean of both ways round
  double naive = 0;  // the same where the best is picked and timed on all repeats
  double noise = 0;  // ArmCell::Noise
  bool repeated = true;  // every arm was timed twice; false: picked and timed on the same times

  // A gain counts where it is at least three times the noise, and a loss by picking likewise: as many as
  // chance gives.
  static constexpr double kClear = 3;
  bool clear_gain() const { return gain > 0 && gain >= kClear * noise; }
  bool clear_loss() const { return gain < 0 && -gain >= kClear * noise; }
};

CellHeadroom HeadroomOf(const ArmCell& cell);

struct HeadroomRow {
  std::string label;
  size_t cells = 0;
  double mean_gain = 0;  // octaves, over all cells
  double mean_naive = 0;
  double median_noise = 0;
  size_t clear = 0;            // cells with a clear gain
  double mean_clear_gain = 0;  // of those
  double share_of_gain = 0;    // of the sum of the gains, what the clear cells bring
  size_t clear_losses = 0;
  size_t unrepeated = 0;
};

// One row for each label, in the labels' order of appearance.
std::vector<HeadroomRow> SummarizeHeadroom(const std::vector<ArmCell>& cells,
                                           const std::function<std::string(const ArmCell&)>& label_of);

// 100 * (2^octaves - 1).
double PercentOfOctaves(double octaves);

}  // namespace dynamiccl
