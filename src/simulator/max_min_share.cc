// SPDX-License-Identifier: Apache-2.0
// Progressive filling: the speeds of all transfers rise together. When a link is full, the transfers on it
// keep their speed and the others go on rising.
#include "src/simulator/max_min_share.h"

#include <limits>

namespace dynamiccl {
namespace {

// A link counts as full, and a speed as reached, if it is within this relative distance. Sums of doubles are
// not exact.
constexpr double kRounding = 1e-9;

// One run of the algorithm.
class Filling {
 public:
  Filling(const std::vector<double>& capacities, const std::vector<std::vector<LinkUse>>& transfers)
      : transfers_(transfers),
        speeds_(transfers.size(), -1),
        free_(capacities),
        rising_(capacities.size(), 0) {
    for (const auto& uses : transfers_)
      for (const LinkUse& use : uses) rising_[use.link] += use.used;
  }

  std::vector<double> Run() {
    for (size_t left = transfers_.size(); left > 0;) {
      const double level = Level();
      if (level >= 1) break;
      left -= StopAt(level);
    }
    for (double& speed : speeds_)
      if (speed < 0) speed = 1;
    return speeds_;
  }

 private:
  // Returns the common speed at which this link is full.
  double LevelOf(size_t link) const {
    return rising_[link] > 0 ? free_[link] / rising_[link] : std::numeric_limits<double>::infinity();
  }
  double Level() const {
    double level = std::numeric_limits<double>::infinity();
    for (size_t link = 0; link < rising_.size(); ++link) level = std::min(level, LevelOf(link));
    return level;
  }
  // Stops the transfers on links that are full at this level; returns their number.
  size_t StopAt(double level);

  const std::vector<std::vector<LinkUse>>& transfers_;
  std::vector<double> speeds_;  // below 0: still rising
  std::vector<double> free_;    // capacity that is left beside stopped transfers
  std::vector<double> rising_;  // use by rising transfers at full speed
};

size_t Filling::StopAt(double level) {
  std::vector<bool> full(rising_.size());
  for (size_t link = 0; link < full.size(); ++link) full[link] = LevelOf(link) <= level * (1 + kRounding);
  size_t stopped = 0;
  for (size_t i = 0; i < transfers_.size(); ++i) {
    bool stops = false;
    for (const LinkUse& use : transfers_[i]) stops = stops || (full[use.link] && use.used > 0);
    if (speeds_[i] >= 0 || !stops) continue;
    speeds_[i] = level;
    ++stopped;
    for (const LinkUse& use : transfers_[i]) {
      free_[use.link] = std::max(0.0, free_[use.link] - level * use.used);
      rising_[use.link] = std::max(0.0, rising_[use.link] - use.used);
    }
  }
  // On a link without rising transfers the rest is rounding error, so it is set to zero.
  for (size_t link = 0; link < full.size(); ++link)
    if (full[link]) rising_[link] = 0;
  return stopped;
}

}  // namespace

std::vector<double> MaxMinSpeeds(const std::vector<double>& capacities,
                                 const std::vector<std::vector<LinkUse>>& transfers) {
  return Filling(capacities, transfers).Run();
}

}  // namespace dynamiccl
