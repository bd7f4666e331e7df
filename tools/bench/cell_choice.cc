// SPDX-License-Identifier: Apache-2.0
// Chooses which cells (a config for one collective and size) a sweep measures next. kActive predicts the
// times of all cells from the measurements (cell_surrogate.h) and ranks cells by expected gain for each
// second of measuring. The other orders visit cells with the fewest repeats first.
#include "tools/bench/cell_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace dynamiccl {
namespace {

// Fewest cells that one choice selects, if so many are left.
constexpr size_t kLeastBatch = 4;

using Samples = std::vector<std::vector<float>>;

// A cell that may be measured next, and its expected gain for each second of measuring. The gain is the
// expected fall of the regret in octaves of time.
struct Candidate {
  size_t cell = 0;
  double promise = 0;
};

// Returns E[max(0, moved * Z - gap)] for a standard normal Z, in closed form. `gap` is the difference of the
// expected times of two cells. A measurement moves it by a normal deviate of standard deviation `moved`.
double ExpectedGain(double gap, double moved) {
  if (!(moved > 0)) return 0;
  const double z = gap / moved;
  const double density = std::exp(-0.5 * z * z) / std::sqrt(2 * 3.14159265358979);
  return moved * (density - z * 0.5 * std::erfc(z / std::sqrt(2.0)));
}

// The two cells of one key (collective and size) with the smallest expected times. `begin` and `end` delimit
// the key's cells in the list of all cells.
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

  // Expected gain of measuring the cell. The best cell may turn out slower than the second; any other cell
  // may turn out faster than the best.
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

// Adds `cell` to the cells to measure. If the default of the same collective and size was never measured,
// adds that default first.
void Append(const std::vector<PlannedCell>& plan, const Samples& samples, size_t cell, size_t begin,
            std::vector<size_t>& order) {
  const bool untouched = plan[begin].is_default() && begin != cell && samples[begin].empty();
  if (untouched && std::find(order.begin(), order.end(), begin) == order.end()) order.push_back(begin);
  order.push_back(cell);
}

// Finds the most promising cell for each key (collective and size), then takes the keys with the greatest
// promise.
NextCells ChooseActive(const std::vector<PricedCell>& cells, const Samples& samples, int repeats) {
  const CellSurrogate surrogate(cells, samples);
  const std::vector<PlannedCell> plan = PlanOf(cells);
  // For each key the most promising cell, and the index of the key's first cell.
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

// Chooses without a prediction: always the cells with the fewest repeats, in the order of the list or at
// random.
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
