// SPDX-License-Identifier: Apache-2.0
// The fit of the constants. The parameters are logarithms of factors: one for each kind of constant, and one
// for each constant of each path. What the fit minimises are log(time by formula / measured time) of all
// cells, and two more groups of terms that pull the parameters to 0.
#include "src/simulator/fit_system.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "src/collective/legal_configs.h"
#include "src/simulator/closed_form.h"
#include "src/simulator/huber_fit.h"
#include "src/simulator/path_keys.h"

namespace dynamiccl {
namespace {

// Repeated measurements of one time differ by up to 10 %. Larger misses count linearly instead of squared, so
// that outliers do not decide.
constexpr double kHuberWidth = 0.1;
// Each path, and each kind of constant, may differ by a factor from the relations in NCCL's tables. The fit
// also keeps the logarithms of these factors small. These are their weights, compared with a weight of 1 for
// log(formula / measured time).
constexpr double kPullOfKinds = 0.02;
constexpr double kPullOfPaths = 0.3;
// Standard size of the random changes of the start parameters, which are logarithms.
constexpr double kStartSpread = 0.5;
// Number of kinds of constants. The kinds are in the order of kPathKeys.
constexpr size_t kKinds = std::size(kPathKeys);
constexpr size_t kChannelKind = 5;
static_assert(kPathKeys[kChannelKind].value == &PathCosts::channel_gbps);

// A path, that is an algorithm and a protocol, on which a cell may have run.
struct Candidate {
  size_t path;  // place in Parameters
  PathTerms terms;
};

// A measured time, with the paths on which it may have run.
struct FitCell {
  const TimedCell* cell;
  std::vector<Candidate> candidates;
};

// The paths that the cells may have used. Turns a point of the fit into the costs of these paths.
class Parameters {
 public:
  // Returns the index of a path; adds the path if it is new.
  size_t PlaceOf(Algorithm algorithm, Protocol protocol) {
    for (size_t i = 0; i < configs_.size(); ++i) {
      if (configs_[i].algorithm == algorithm && configs_[i].protocol == protocol) return i;
    }
    configs_.push_back({algorithm, protocol, 0});
    priors_.push_back(PriorCosts(algorithm, protocol));
    priors_.back().channel_gbps = 0;
    return configs_.size() - 1;
  }
  // Only cells that use fewer than all channels show how much one channel carries. So channel_gbps is fitted
  // only if the path has such cells.
  void LearnChannels(size_t path) {
    priors_[path].channel_gbps = PriorCosts(configs_[path].algorithm, configs_[path].protocol).channel_gbps;
  }

  size_t size() const { return kKinds * (1 + configs_.size()); }
  size_t paths() const { return configs_.size(); }
  const CollectiveConfig& config(size_t path) const { return configs_[path]; }

  // Returns the costs of a path at the point x of the fit.
  PathCosts CostsAt(std::span<const double> x, size_t path) const {
    PathCosts costs;
    for (size_t kind = 0; kind < kKinds; ++kind) {
      const double factor = std::exp(x[kind] + x[kKinds * (1 + path) + kind]);
      costs.*kPathKeys[kind].value = std::min(kMaxPathValue, priors_[path].*kPathKeys[kind].value * factor);
    }
    return costs;
  }

 private:
  std::vector<CollectiveConfig> configs_;
  std::vector<PathCosts> priors_;
};

// Returns the pairs of algorithm and protocol on which the cell may have run, where its configuration leaves
// them open.
std::vector<CollectiveConfig> PossibleConfigs(const TimedCell& cell) {
  if (!cell.config.leaves_nccl_alone()) return {cell.config};
  std::vector<CollectiveConfig> configs;
  for (int i = 0; i < kAlgorithms; ++i) {
    const auto algorithm = static_cast<Algorithm>(i);
    const bool is_open = cell.config.algorithm == Algorithm::kUndefined;
    const bool usual = algorithm == Algorithm::kRing || algorithm == Algorithm::kTree;
    if (is_open ? !usual : algorithm != cell.config.algorithm) continue;
    for (const Protocol protocol : {Protocol::kLL, Protocol::kSimple}) {
      if (NcclConfigs(cell.collective).test(ConfigIndex(algorithm, protocol)))
        configs.push_back({algorithm, protocol, 0});
    }
  }
  return configs;
}

// One fit of all constants to all cells. It lives for one call of FitSystem.
class Fit {
 public:
  explicit Fit(System& system) : system_(system) {}

  Status Add(const TimedCell& cell) {
    FitCell fitted{&cell, {}};
    for (const CollectiveConfig& config : PossibleConfigs(cell)) {
      const PathTerms terms = TermsOf(cell.collective, config.algorithm, cell.n_ranks, cell.n_nodes);
      if (terms.volume <= 0 || !PriorCosts(config.algorithm, config.protocol).known()) continue;
      fitted.candidates.push_back({parameters_.PlaceOf(config.algorithm, config.protocol), terms});
      if (cell.config.channels > 0 && cell.config.channels < system_.max_channels)
        parameters_.LearnChannels(fitted.candidates.back().path);
    }
    if (fitted.candidates.empty()) {
      return MakeError(ErrorKind::kInvalidArgument, "{} of {} by {}: no formula for {} ranks on {} nodes",
                       Name(cell.collective), cell.bytes, Describe(cell.config), cell.n_ranks, cell.n_nodes);
    }
    cells_.push_back(std::move(fitted));
    return {};
  }

  // Fits the constants; returns the loss that remains.
  double Run(const FitOptions& options) {
    const auto function = [this](std::span<const double> x, std::vector<double>& out) { Misses(x, out); };
    std::mt19937_64 random(options.seed);
    HuberFit best;
    for (int start = 0; start < std::max(1, options.starts); ++start) {
      std::vector<double> x(parameters_.size(), 0.0);
      for (double& value : x) value = start == 0 ? 0 : kStartSpread * Uniform(random);
      HuberFit fit = MinimizeHuber(function, std::move(x), kHuberWidth, options.iterations);
      if (start == 0 || fit.loss < best.loss) best = std::move(fit);
    }
    for (size_t path = 0; path < parameters_.paths(); ++path) {
      const CollectiveConfig& config = parameters_.config(path);
      system_.path(config.algorithm, config.protocol) = parameters_.CostsAt(best.x, path);
    }
    return best.loss;
  }

 private:
  // Returns a random number from -1 to 1. The distributions of the standard library differ between libraries.
  static double Uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-52 - 1; }

  // Returns the logarithm of the predicted time: that of the cheapest path that the cell may have run on.
  double LogTime(const FitCell& fitted, const std::vector<PathCosts>& costs) const {
    double best = -1;
    for (const Candidate& candidate : fitted.candidates) {
      const TimedCell& cell = *fitted.cell;
      const double time = FormulaTime(system_, candidate.terms, costs[candidate.path], cell.n_ranks,
                                      cell.n_nodes, cell.bytes, cell.config.channels);
      if (best < 0 || time < best) best = time;
    }
    return std::log(best);
  }

  // Computes the residuals at x: one for each cell, then one for each parameter.
  void Misses(std::span<const double> x, std::vector<double>& out) const {
    out.clear();
    std::vector<PathCosts> costs;
    for (size_t path = 0; path < parameters_.paths(); ++path) costs.push_back(parameters_.CostsAt(x, path));
    for (const FitCell& cell : cells_) out.push_back(LogTime(cell, costs) - std::log(cell.cell->us));
    for (size_t i = 0; i < x.size(); ++i) out.push_back((i < kKinds ? kPullOfKinds : kPullOfPaths) * x[i]);
  }

  System& system_;
  Parameters parameters_;
  std::vector<FitCell> cells_;
};

// Returns kInvalidArgument for a cell from which nothing can be learned.
Status CheckCell(const TimedCell& cell) {
  const bool shaped = cell.n_ranks >= 2 && cell.n_nodes >= 1 && cell.n_nodes <= cell.n_ranks;
  if (shaped && cell.us > 0 && std::isfinite(cell.us)) return {};
  return MakeError(ErrorKind::kInvalidArgument,
                   "{} of {} bytes on {} ranks and {} nodes took {} us: no time "
                   "to fit to",
                   Name(cell.collective), cell.bytes, cell.n_ranks, cell.n_nodes, cell.us);
}

// Returns the most channels of any cell, which stand for "all channels".
int MostChannels(std::span<const TimedCell> cells) {
  int most = 1;
  for (const TimedCell& cell : cells) most = std::max<int>(most, cell.config.channels);
  return most;
}

// Returns the values of network_ranks to try. 1 is always tried. If some cells use only a part of several
// nodes, the powers of 2 up to all ranks of a node are tried too. Cells on full nodes do not tell these
// values apart.
std::vector<int> NetworkRanksToTry(const System& system, std::span<const TimedCell> cells) {
  const auto uses_part = [&](const TimedCell& cell) {
    return cell.n_nodes > 1 && cell.n_ranks < cell.n_nodes * system.ranks_per_node;
  };
  std::vector<int> tried = {1};
  if (std::none_of(cells.begin(), cells.end(), uses_part)) return tried;
  for (int ranks = 2; ranks < system.ranks_per_node; ranks *= 2) tried.push_back(ranks);
  tried.push_back(system.ranks_per_node);
  return tried;
}

// Fits the constants of `system` for each value of network_ranks and keeps the best; the least wins ties.
// `fit` belongs to `system`.
void FitConstants(Fit& fit, System& system, std::span<const TimedCell> cells, const FitOptions& options) {
  System best;
  double best_loss = -1;
  for (const int ranks : NetworkRanksToTry(system, cells)) {
    system.network_ranks = ranks;
    const double loss = fit.Run(options);
    if (best_loss >= 0 && loss >= best_loss) continue;
    best_loss = loss;
    best = system;
  }
  system = best;
}

// The bandwidths in GB/s, inside a node and between nodes, of which the shares in kRows are parts.
constexpr double kNode = 200;
constexpr double kNetwork = 20;

// Prior costs of one algorithm. Columns: LL, LL128, Simple.
struct Row {
  Algorithm algorithm;
  double base_us[kProtocols];
  double intra_us[kProtocols];
  double inter_us[kProtocols];
  double share[kProtocols];  // share of the bus's bandwidth
};

// In PAT's row intra_us is its work for each rank.
constexpr Row kRows[] = {{Algorithm::kTree, {6.8, 14, 8.4}, {0.6, 1.25, 4}, {5, 8.5, 14}, {0.25, 0.8, 0.9}},
                         {Algorithm::kRing, {6.6, 14, 8.4}, {0.6, 1.9, 3.4}, {2.7, 4, 14}, {0.45, 0.9, 1}},
                         {Algorithm::kNvls, {0, 0, 8}, {0, 0, 25}, {0, 0, 18}, {0, 0, 0.85}},
                         {Algorithm::kNvlsTree, {0, 0, 8}, {0, 0, 25}, {0, 0, 20.9}, {0, 0, 0.85}},
                         {Algorithm::kPat, {0, 0, 8}, {0, 0, 2.8}, {0, 0, 4}, {0, 0, 0.75}}};

}  // namespace

int RanksPerNode(std::span<const TimedCell> cells) {
  int most = 1;
  for (const TimedCell& cell : cells) {
    most = std::max(most, (cell.n_ranks + cell.n_nodes - 1) / std::max(1, cell.n_nodes));
  }
  return most;
}

Result<System> FitSystem(const std::string& name, std::span<const TimedCell> cells,
                         const FitOptions& options) {
  if (cells.empty()) return MakeError(ErrorKind::kInvalidArgument, "{}: no times to fit to", name);
  System system{.name = name,
                .source = fmt::format("fitted to {} times", cells.size()),
                .ranks_per_node = RanksPerNode(cells),
                .max_channels = MostChannels(cells)};
  Fit fit(system);
  for (const TimedCell& cell : cells) {
    const Status checked = CheckCell(cell);
    if (!checked) return Wrap(checked.error(), name);
    const Status added = fit.Add(cell);
    if (!added) return Wrap(added.error(), name);
  }
  FitConstants(fit, system, cells, options);
  FitResiduals(system, cells);
  return system;
}

// Returns prior costs in the relations of NCCL's tables.
PathCosts PriorCosts(Algorithm algorithm, Protocol protocol) {
  const auto p = static_cast<size_t>(protocol);
  for (const Row& row : kRows) {
    if (row.algorithm != algorithm) continue;
    return {.base_us = row.base_us[p],
            .intra_hop_us = row.intra_us[p],
            .inter_hop_us = row.inter_us[p],
            .intra_gbps = row.share[p] * kNode,
            .inter_gbps = row.share[p] * kNetwork,
            .channel_gbps = row.share[p] * kNetwork};
  }
  return {};
}

}  // namespace dynamiccl
