// SPDX-License-Identifier: Apache-2.0
// How much faster than the library's own choice a job could be. The best arm is picked on one half of the
// repeats and timed on the other, and then the other way round, so that lucky times do not count. The gain is
// compared with the difference between repeats of one arm.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "studies/headroom/timed_arms.h"

namespace dynamiccl {

// The headroom of one cell in octaves: 0.1 is 7 % faster than the default.
struct CellHeadroom {
  // log2(default / picked). Arms are picked on one half and timed on the other, and then the other way round;
  // the value is the mean of both.
  double gain = 0;
  // The same gain if the best arm is picked and timed on all repeats.
  double naive = 0;
  // ArmCell::Noise.
  double noise = 0;
  // True if every arm was timed twice. If false, arms were picked and timed on the same times.
  bool repeated = true;

  // A gain is clear if it is at least this many times the noise. Losses by picking are judged in the same
  // way. Their number shows how many clear gains come from chance.
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
  // Mean over all cells.
  double mean_gain = 0;
  double mean_naive = 0;
  double median_noise = 0;
  // Number of cells with a clear gain.
  size_t clear = 0;
  // Mean over the cells with a clear gain.
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
