// SPDX-License-Identifier: Apache-2.0
// kActive fits a surrogate (cell_surrogate.h) to the measurements and ranks cells by expected gain for each
// second. The other orders visit cells with the fewest repeats first.
#include "tools/bench/cell_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace dynamiccl {
namespace {

// Least number of cells of one choice.
constexpr size_t kLeastBatch = 4;

using Samples = std::vector<std::vector<float>>;

// A cell and its expected gain in octaves for each second.
struct Candidate {
  size_t cell = 0;
  double promise = 0;
};

// Expected gain of choosing after an observation that moves the difference of two means, now `gap`, by a
// normal deviate of standard deviation `moved`: E[max(0, moved * Z - gap)] in closed form.
double ExpectedGain(double gap, double moved) {
  if (!(moved > 0)) return 0;
  const double z = gap / moved;
  const double density = std::exp(-0.5 * z * z) / std::sqrt(2 * 3.14159265358979);
  return moved * (density - z * 0.5 * std::erfc(z / std::sqrt(2.0)));
}

// The two cells of one key with the smallest expected times. `begin` and `end` delimit the key's cells in the
// plan.
class KeyChoice {
 public:
  KeyChoice(const CellSurrogate& surrogate, size_t begin, size_t end) : surrogate_(surrogate) {
    for (size_t i = begin; i < end; ++i) {
      if (best_ == kNone || surrogate.mean(i) < surrogate.mean(best_)) {
        second_ = best_;
        best_ = i;
      } else if (second_ == kNone || surrogate.mean(i) < surrogate.mean(second_)) {
        second_ = i;
      }
    }
  }

  // Expected gain of visiting the cell: it may overtake the best, or the best may fall behind the second.
  double Gain(size_t cell) const {
    const size_t rival = cell == best_ ? second_ : best_;
    if (rival == kNone) return 0;
    const double own = surrogate_.variance(cell);
    const double moved = std::abs(own - surrogate_.Covariance(cell, rival)) /
                         std::sqrt(own + CellSurrogate::NoiseOf(kVisitRepeats));
    return ExpectedGain(std::abs(surrogate_.mean(cell) - surrogate_.mean(rival)), moved);
  }

 private:
  static constexpr size_t kNone = std::numeric_limits<size_t>::max();
  const CellSurrogate& surrogate_;
  size_t best_ = kNone, second_ = kNone;
};

std::vector<PlannedCell> PlanOf(const std::vector<PricedCell>& cells) {
  std::vector<PlannedCell> plan;
  for (const PricedCell& priced : cells) plan.push_back(priced.cell);
  return plan;
}

// Adds `cell` to the order. If the key's default was never measured, adds the default before it.
void Append(const std::vector<PlannedCell>& plan, const Samples& samples, size_t cell, size_t begin,
            std::vector<size_t>& order) {
  const bool untouched = plan[begin].is_default() && begin != cell && samples[begin].empty();
  if (untouched && std::find(order.begin(), order.end(), begin) == order.end()) order.push_back(begin);
  order.push_back(cell);
}

// Picks the best cell of every key, then the keys of greatest promise.
NextCells ChooseActive(const std::vector<PricedCell>& cells, const Samples& samples, int repeats) {
  const CellSurrogate surrogate(cells, samples);
  const std::vector<PlannedCell> plan = PlanOf(cells);
  // The best candidate of each key, and the key's first cell.
  std::vector<std::pair<Candidate, size_t>> best_of_keys;
  size_t measured = 0;
  for (size_t begin = 0, end = 0; begin < cells.size(); begin = end) {
    end = GroupEnd(plan, begin);
    const KeyChoice key(surrogate, begin, end);
    Candidate best{begin, -1};
    for (size_t i = begin; i < end; ++i) {
      measured += !samples[i].empty();
      if (samples[i].size() >= static_cast<size_t>(repeats)) continue;
      const double seconds = VisitSeconds(std::exp2(surrogate.mean(i)), samples[i].empty());
      if (const double promise = key.Gain(i) / seconds; promise > best.promise) best = {i, promise};
    }
    if (best.promise >= 0) best_of_keys.push_back({best, begin});
  }
  std::stable_sort(best_of_keys.begin(), best_of_keys.end(),
                   [](const auto& a, const auto& b) { return a.first.promise > b.first.promise; });
  NextCells next;
  if (!best_of_keys.empty()) next.promise = best_of_keys.front().first.promise;
  best_of_keys.resize(std::min(best_of_keys.size(), std::max(kLeastBatch, measured / 8)));
  for (const auto& [candidate, begin] : best_of_keys)
    Append(plan, samples, candidate.cell, begin, next.cells);
  return next;
}

// Measures all cells once, then again: always the cells with the fewest repeats, in plan or random order.
NextCells ChooseBlindly(const std::vector<PricedCell>& cells, const Samples& samples,
                        const ChoiceOptions& options) {
  std::vector<size_t> order(cells.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (options.order == SweepOrder::kRandom) {
    // std::shuffle is not used: its draws differ between standard libraries.
    std::mt19937_64 random(options.seed);
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return samples[a].size() < samples[b].size(); });
  NextCells next;
  const std::vector<PlannedCell> plan = PlanOf(cells);
  for (const size_t i : order) {
    if (next.cells.size() >= kLeastBatch || samples[i].size() >= static_cast<size_t>(options.repeats)) break;
    size_t begin = i;
    while (!plan[begin].is_default() && begin > 0) --begin;
    Append(plan, samples, i, begin, next.cells);
  }
  return next;
}

}  // namespace

std::optional<SweepOrder> ParseSweepOrder(std::string_view name) {
  if (name == "rounds") return SweepOrder::kRounds;
  if (name == "active") return SweepOrder::kActive;
  if (name == "random") return SweepOrder::kRandom;
  if (name == "grid") return SweepOrder::kGrid;
  return std::nullopt;
}

double VisitSeconds(double call_us, bool first) {
  const double sample_us = IterationsFor(call_us, kSampleUs) * call_us;
  return 1e-6 * (kVisitRepeats * sample_us + (first ? call_us : 0)) + 2e-3 * kProbeMilliseconds;
}

NextCells ChooseNext(const std::vector<PricedCell>& cells, const Samples& samples,
                     const ChoiceOptions& options) {
  if (options.order == SweepOrder::kActive) return ChooseActive(cells, samples, options.repeats);
  return ChooseBlindly(cells, samples, options);
}

}  // namespace dynamiccl
