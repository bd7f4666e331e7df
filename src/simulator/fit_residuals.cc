// SPDX-License-Identifier: Apache-2.0
// Fits the residuals, which are the logs of measured time over formula, and the parameters by which residuals
// are interpolated between rank counts (system.h).
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "src/base/statistics.h"
#include "src/simulator/closed_form.h"
#include "src/simulator/fit_system.h"
#include "src/simulator/huber_fit.h"

namespace dynamiccl {
namespace {

// Between two measured rank counts, half of the prediction follows the formulas and half a straight line. The
// formulas are right while a library keeps its algorithm; the straight line is right on average where a cliff
// lies between the two.
constexpr double kFormulaShare = 0.5;
// Above the largest measured rank count: the share of the straight line through the two largest ones. It is
// half, because the formulas miss what slows a growing network down, and the line mistakes a cliff for a
// slope.
constexpr double kLineShare = 0.5;
// The values that are tried for drift_bytes_per_rank.
constexpr uint64_t kDrifts[] = {0, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20};
// Share of a residual that is left at a rank count twice as large or small. If both neighbours are one
// doubling away, this is as good as a straight line. Four doublings away, half of the residual is left.
constexpr double kReach = 0.85;
// The share kReach for the case that only two rank counts were measured. Two rank counts do not show that the
// residuals of one hold for others.
constexpr double kReachOfTwo = 0.3;
// Least number of measured rank counts for a straight line between them, and for drift_bytes_per_rank. Two
// give no line to check against, and three do not show where cliffs drift.
constexpr size_t kLeastForLine = 3;
constexpr size_t kLeastForDrift = 4;
// Misses of more than 10 % of a time count linearly, as in fit_system.cc.
constexpr double kHuberWidth = 0.1;

using Key = std::tuple<Collective, Algorithm, Protocol, int, uint64_t>;

// Returns the configuration under which a cell's residual is stored.
CollectiveConfig KeyOf(const TimedCell& cell) {
  CollectiveConfig config = cell.config;
  if (config.algorithm == Algorithm::kUndefined) config.protocol = Protocol::kUndefined;
  return config;
}

// Shrinks a residual towards 0 if it is no larger than the spread of the repeats, because it is then mostly
// noise.
double Shrunk(double residual, double spread) {
  const double signal = residual * residual;
  return signal <= 0 ? 0 : residual * signal / (signal + spread * spread);
}

// Holds the formulas' times for each rank count. They are computed at the first use.
class RankCounts {
 public:
  explicit RankCounts(const System& system) : system_(system) {}
  const CollectiveTimes& operator[](int n_ranks) {
    const auto found = times_.find(n_ranks);
    if (found != times_.end()) return found->second;
    return times_.emplace(n_ranks, CollectiveTimes(system_, n_ranks)).first->second;
  }

 private:
  const System& system_;
  std::map<int, CollectiveTimes> times_;
};

// Returns the median of log(measured time / formula) of each key, shrunk by Shrunk.
std::vector<Residual> ResidualsOf(const System& formulas, std::span<const TimedCell> cells) {
  RankCounts times(formulas);
  std::map<Key, std::vector<double>> misses;
  std::vector<double> spreads;
  for (const TimedCell& cell : cells) {
    if (!FillsNodes(formulas, cell)) continue;
    const CollectiveConfig config = KeyOf(cell);
    const double formula = times[cell.n_ranks].Microseconds(cell.collective, cell.bytes, config);
    if (formula <= 0) continue;
    misses[{cell.collective, config.algorithm, config.protocol, cell.n_ranks, cell.bytes}].push_back(
        std::log(cell.us / formula));
    if (cell.log_spread > 0) spreads.push_back(cell.log_spread);
  }
  const double spread = Median(spreads);
  std::vector<Residual> residuals;
  for (const auto& [key, values] : misses) {
    const auto& [collective, algorithm, protocol, n_ranks, bytes] = key;
    residuals.push_back({collective, algorithm, protocol, n_ranks, bytes, Shrunk(Median(values), spread)});
  }
  return residuals;
}

// Returns Huber's loss over all cells of these rank counts. Each cell is predicted without the residuals of
// its own rank count.
double LossWithout(const System& system, std::span<const TimedCell> cells, const std::set<int>& counts) {
  double loss = 0;
  for (const int left_out : counts) {
    System without = system;
    std::erase_if(without.residuals, [&](const Residual& r) { return r.n_ranks == left_out; });
    const CollectiveTimes times(without, left_out);
    for (const TimedCell& cell : cells) {
      if (cell.n_ranks != left_out || !FillsNodes(system, cell)) continue;
      const double time = times.Microseconds(cell.collective, cell.bytes, KeyOf(cell));
      if (time > 0) loss += HuberLoss(std::log(time / cell.us), kHuberWidth);
    }
  }
  return loss;
}

// Returns the candidate with the least loss. If others are equally good, 0 (no drift) wins.
uint64_t BestDrift(System system, std::span<const TimedCell> cells, const std::set<int>& counts) {
  uint64_t best = 0;
  double best_loss = 0;
  for (const uint64_t drift : kDrifts) {
    system.drift_bytes_per_rank = drift;
    const double loss = LossWithout(system, cells, counts);
    if (drift != 0 && loss >= best_loss) continue;
    best = drift;
    best_loss = loss;
  }
  return best;
}

}  // namespace

bool FillsNodes(const System& system, const TimedCell& cell) {
  return cell.n_nodes == system.NodesFor(cell.n_ranks);
}

// The drift is judged on the inner rank counts only, because the outermost ones would have to be
// extrapolated.
void FitResiduals(System& system, std::span<const TimedCell> cells) {
  std::set<int> counts;
  for (const TimedCell& cell : cells) {
    if (FillsNodes(system, cell)) counts.insert(cell.n_ranks);
  }
  system.residuals.clear();
  system.formula_share = counts.size() >= kLeastForLine ? kFormulaShare : 1;
  system.residual_reach = counts.size() >= kLeastForLine ? kReach : kReachOfTwo;
  system.drift_bytes_per_rank = 0;
  system.line_share = counts.size() >= kLeastForLine ? kLineShare : 0;
  system.residuals = ResidualsOf(system, cells);
  if (counts.size() < kLeastForDrift) return;
  counts.erase(counts.begin());
  counts.erase(std::prev(counts.end()));
  system.drift_bytes_per_rank = BestDrift(system, cells, counts);
}

}  // namespace dynamiccl
