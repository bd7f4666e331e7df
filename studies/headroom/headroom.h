// SPDX-License-Identifier: Apache-2.0
// How much can be won over the library's own choice. The best arm is picked on one half of the repeats and
// timed on the other, both ways round, so that lucky times do not count. The gain is compared with how far
// repeats of one arm differ.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "studies/headroom/timed_arms.h"

namespace dynamiccl {

// The headroom of one cell in octaves: 0.1 is 7 % faster than the default.
struct CellHeadroom {
  // log2(default / picked), each timed on the half on which it was not picked; mean of both ways round.
  double gain = 0;
  // The same with the best picked and timed on all repeats.
  double naive = 0;
  // ArmCell::Noise.
  double noise = 0;
  // Every arm was timed twice. False: arms were picked and timed on the same times.
  bool repeated = true;

  // A gain is clear when it is at least this many times the noise. Losses by picking are judged in the same
  // way; their number shows how many clear gains chance gives.
  static constexpr double kClear = 3;
  bool clear_gain() const { return gain > 0 && gain >= kClear * noise; }
  bool clear_loss() const { return gain < 0 && -gain >= kClear * noise; }
};

// The cell must have the default arm.
CellHeadroom HeadroomOf(const ArmCell& cell);

// Summary of a group of cells; gains are octaves.
struct HeadroomRow {
  std::string label;
  size_t cells = 0;
  // Over all cells.
  double mean_gain = 0;
  double mean_naive = 0;
  double median_noise = 0;
  // Cells with a clear gain.
  size_t clear = 0;
  // Over the cells with a clear gain.
  double mean_clear_gain = 0;
  // Share of the sum of all gains that the clear cells contribute.
  double share_of_gain = 0;
  size_t clear_losses = 0;
  size_t unrepeated = 0;
};

// One row for each label, in order of the labels' first appearance.
std::vector<HeadroomRow> SummarizeHeadroom(const std::vector<ArmCell>& cells,
                                           const std::function<std::string(const ArmCell&)>& label_of);

// 100 * (2^octaves - 1).
double PercentOfOctaves(double octaves);

}  // namespace dynamiccl
