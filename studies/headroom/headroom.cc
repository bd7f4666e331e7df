// SPDX-License-Identifier: Apache-2.0
// Picks and times arms on the halves of their repeats.
#include "studies/headroom/headroom.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/base/statistics.h"

namespace dynamiccl {
namespace {

// Returns the fastest arm on one half, and the default among equals.
const ArmTime& PickOn(const ArmCell& cell, int half) {
  const ArmTime* best = &cell.arms.at(kDefaultArm);
  for (const auto& [name, time] : cell.arms) {
    if (time.halves[half] < best->halves[half]) best = &time;
  }
  return *best;
}

// Geometric mean of both halves.
double WholeTime(const ArmTime& time) {
  return std::sqrt(time.halves[0] * time.halves[1]);
}

// Gain of the best arm when it is picked and timed on all repeats.
double NaiveGain(const ArmCell& cell) {
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [name, time] : cell.arms) least = std::min(least, WholeTime(time));
  return std::log2(WholeTime(cell.arms.at(kDefaultArm)) / least);
}

// Turns the sums of a row into means and the median.
void Finish(HeadroomRow& row, std::vector<double> noises, double sum, double clear_sum) {
  const auto cells = static_cast<double>(row.cells);
  row.median_noise = MedianInPlace(noises);
  row.mean_gain = sum / cells;
  row.mean_naive /= cells;
  if (row.clear > 0) row.mean_clear_gain = clear_sum / static_cast<double>(row.clear);
  if (sum > 0) row.share_of_gain = clear_sum / sum;
}

HeadroomRow Summarize(const std::string& label, const std::vector<const ArmCell*>& cells) {
  HeadroomRow row;
  row.label = label;
  row.cells = cells.size();
  std::vector<double> noises;
  double sum = 0, clear_sum = 0;
  for (const ArmCell* cell : cells) {
    const CellHeadroom headroom = HeadroomOf(*cell);
    sum += headroom.gain;
    row.mean_naive += headroom.naive;
    noises.push_back(headroom.noise);
    row.clear_losses += headroom.clear_loss();
    row.unrepeated += !headroom.repeated;
    if (!headroom.clear_gain()) continue;
    ++row.clear;
    clear_sum += headroom.gain;
  }
  Finish(row, std::move(noises), sum, clear_sum);
  return row;
}

}  // namespace

CellHeadroom HeadroomOf(const ArmCell& cell) {
  const ArmTime& usual = cell.arms.at(kDefaultArm);
  CellHeadroom headroom{.naive = NaiveGain(cell), .noise = cell.Noise()};
  for (int half = 0; half < 2; ++half) {
    const int other = 1 - half;
    headroom.gain += std::log2(usual.halves[other] / PickOn(cell, half).halves[other]) / 2;
  }
  for (const auto& [name, time] : cell.arms) headroom.repeated = headroom.repeated && time.repeats > 1;
  return headroom;
}

std::vector<HeadroomRow> SummarizeHeadroom(const std::vector<ArmCell>& cells,
                                           const std::function<std::string(const ArmCell&)>& label_of) {
  std::vector<std::pair<std::string, std::vector<const ArmCell*>>> groups;
  for (const ArmCell& cell : cells) {
    const std::string label = label_of(cell);
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == label; });
    if (group == groups.end()) group = groups.insert(group, {label, {}});
    group->second.push_back(&cell);
  }
  std::vector<HeadroomRow> rows;
  for (const auto& [label, members] : groups) rows.push_back(Summarize(label, members));
  return rows;
}

double PercentOfOctaves(double octaves) {
  return 100 * (std::exp2(octaves) - 1);
}

}  // namespace dynamiccl
