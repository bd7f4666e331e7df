// SPDX-License-Identifier: Apache-2.0
// Draws a cluster (Draw), then computes the times of all cells from the simulator's formulas, cliffs over
// sizes, a cost for each channel, and noise.
#include "studies/clusters/random_clusters.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <fmt/format.h>

#include "src/collective/size_class.h"
#include "src/simulator/closed_form.h"
#include "src/simulator/fit_system.h"
#include "src/simulator/library_pick.h"

namespace dynamiccl {
namespace {

constexpr Collective kCollectives[] = {Collective::kAllReduce, Collective::kAllGather,
                                       Collective::kReduceScatter};
// Number of sizes of each collective. One size is drawn from each sixth of the range.
constexpr int kSizes = 6;
// Range of the sizes in octaves: 256 bytes to 1 GiB.
constexpr double kLeastOctave = 8, kMaxOctave = 30;
// Range of --every-class, in bytes.
constexpr uint64_t kLeastOfEveryClass = 4 << 10, kMaxOfEveryClass = 64 << 20;

// Random draws. Uniform and Below use the generator's bits directly, so they are equal on all platforms.
// Normal depends on the standard library.
class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}
  double Normal() { return normal_(random_); }
  double Uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(random_() >> 11) * 0x1.0p-53;
  }
  int Below(int count) { return static_cast<int>(random_() % static_cast<uint64_t>(count)); }
  double Factor(double spread) { return std::exp(spread * Normal()); }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
};

// A wave over sizes by which a path deviates from the formulas.
struct Cliff {
  // Height as a natural logarithm.
  double height = 0;
  // Period in octaves.
  double period = 1;
  double phase = 0;

  double At(double octave) const { return height * std::sin(6.283185307179586 * octave / period + phase); }
};

// One drawn cluster.
struct Cluster {
  System system;
  // Microseconds that each channel adds to a call.
  double channel_us = 0;
  Cliff cliffs[kTunableCollectives][kAlgorithms][kProtocols];
};

// Fills paths that the fit did not see. They relate to the fitted path as in NCCL's own tables.
void CompletePaths(System& system) {
  const PathCosts& known = system.path(Algorithm::kRing, Protocol::kSimple);
  const PathCosts prior = PriorCosts(Algorithm::kRing, Protocol::kSimple);
  if (!known.known() || !prior.known()) return;
  for (const Algorithm algorithm : {Algorithm::kTree, Algorithm::kRing, Algorithm::kPat}) {
    for (const Protocol protocol : {Protocol::kLL, Protocol::kLL128, Protocol::kSimple}) {
      PathCosts& path = system.path(algorithm, protocol);
      const PathCosts own = PriorCosts(algorithm, protocol);
      if (path.known() || !own.known()) continue;
      const auto scaled = [](double value, double of, double to) { return of > 0 ? value * to / of : value; };
      path.base_us = scaled(own.base_us, prior.base_us, known.base_us);
      path.intra_hop_us = scaled(own.intra_hop_us, prior.intra_hop_us, known.intra_hop_us);
      path.inter_hop_us = scaled(own.inter_hop_us, prior.inter_hop_us, known.inter_hop_us);
      path.intra_gbps = scaled(own.intra_gbps, prior.intra_gbps, known.intra_gbps);
      path.inter_gbps = scaled(own.inter_gbps, prior.inter_gbps, known.inter_gbps);
    }
  }
}

// Multiplies the path's constants by the cluster's factors and by factors of its own.
void MovePath(PathCosts& path, double latency, double bandwidth, double channels, double spread, Dice& dice) {
  if (!path.known()) return;
  path.base_us *= latency * dice.Factor(spread);
  path.intra_hop_us *= latency * dice.Factor(spread);
  path.inter_hop_us *= latency * dice.Factor(spread);
  path.intra_gbps *= bandwidth * dice.Factor(spread / 2);
  path.inter_gbps *= bandwidth * dice.Factor(spread / 2);
  const double whole = path.inter_gbps > 0 ? std::max(path.inter_gbps, path.intra_gbps / 4) : path.intra_gbps;
  path.channel_gbps = whole / channels;
}

Cluster Draw(const System& fitted, const ClusterOptions& options, Dice& dice) {
  Cluster cluster{fitted, 0, {}};
  System& system = cluster.system;
  system.residuals.clear();
  CompletePaths(system);
  system.max_channels = 8 << dice.Below(3);
  const double latency = dice.Factor(0.4), bandwidth = dice.Factor(0.4);
  // The number of channels that together use the full bandwidth of the links.
  const double channels = std::exp2(dice.Uniform(0.5, std::log2(system.max_channels)));
  for (auto& row : system.paths) {
    for (PathCosts& path : row) MovePath(path, latency, bandwidth, channels, options.spread, dice);
  }
  cluster.channel_us = system.path(Algorithm::kRing, Protocol::kSimple).base_us * dice.Uniform(0.002, 0.05);
  for (auto& collective : cluster.cliffs) {
    for (auto& algorithm : collective) {
      for (Cliff& cliff : algorithm)
        cliff = {options.spread / 2 * dice.Normal(), dice.Uniform(6, 16), dice.Uniform(0, 6.28)};
    }
  }
  return cluster;
}

// Microseconds of a call without noise; -1 where there is no formula.
double TrueTime(const Cluster& cluster, const CollectiveTimes& times, Collective collective, uint64_t bytes,
                const CollectiveConfig& config) {
  const double formula = times.Microseconds(collective, bytes, config);
  if (formula <= 0) return -1;
  const Cliff& cliff = cluster.cliffs[static_cast<size_t>(collective)][static_cast<size_t>(config.algorithm)]
                                     [static_cast<size_t>(config.protocol)];
  return formula * std::exp(cliff.At(std::log2(static_cast<double>(bytes)))) +
         cluster.channel_us * config.channels;
}

// Noisy repeats of one time.
std::vector<float> Repeats(double us, const ClusterOptions& options, Dice& dice) {
  std::vector<float> repeats;
  for (int i = 0; i < options.repeats; ++i) {
    const double tail = dice.Uniform(0, 1) < options.outliers ? dice.Uniform(1.5, 3) : 1;
    repeats.push_back(static_cast<float>(us * dice.Factor(options.noise) * tail));
  }
  return repeats;
}

// A random size in the given sixth of the range, a multiple of 128 bytes.
uint64_t SomeSize(int place, Dice& dice) {
  const double width = (kMaxOctave - kLeastOctave) / kSizes;
  return static_cast<uint64_t>(std::exp2(kLeastOctave + width * (place + dice.Uniform(0, 1)))) / 128 * 128;
}

std::vector<uint64_t> EveryClass() {
  std::vector<uint64_t> sizes;
  for (SizeClass at = SizeClassOf(kLeastOfEveryClass); LowerBound(at) <= kMaxOfEveryClass; ++at.index)
    sizes.push_back(LowerBound(at));
  return sizes;
}

// The sweep of one cluster with one number of ranks.
class ClusterSweep {
 public:
  ClusterSweep(const Cluster& cluster, const std::string& topology, int n_ranks)
      : cluster_(cluster),
        topology_(topology),
        n_nodes_(cluster.system.NodesFor(n_ranks)),
        times_(cluster.system, n_ranks, n_nodes_, CollectiveTimes::Residuals::kIgnored),
        model_(LibraryView(cluster.system, n_ranks, n_nodes_)) {}

  void Append(const ClusterOptions& options, Dice& dice, MeasurementFile& file) const {
    file.contexts.push_back({topology_, model_});
    for (const Collective collective : kCollectives) {
      if (options.every_class) {
        for (const uint64_t bytes : EveryClass()) AppendKey(collective, bytes, options, dice, file);
        continue;
      }
      // Sizes and times are drawn alternately. Committed results were made with these seeds, so the order
      // must not change.
      for (int place = 0; place < kSizes; ++place)
        AppendKey(collective, SomeSize(place, dice), options, dice, file);
    }
  }

 private:
  void AppendKey(Collective collective, uint64_t bytes, const ClusterOptions& options, Dice& dice,
                 MeasurementFile& file) const {
    const CollectiveConfig usual =
        LibraryPick(cluster_.system, collective, bytes, model_.fabric.n_ranks, n_nodes_);
    const double usual_us = TrueTime(cluster_, times_, collective, bytes, usual);
    if (usual.leaves_nccl_alone() || usual_us <= 0) return;
    file.rows.push_back({topology_, collective, bytes, usual, true, Repeats(usual_us, options, dice)});
    for (const CollectiveConfig& config :
         EnumerateConfigs(NcclConfigs(collective), model_.fabric.max_channels)) {
      const bool priced = EstimateCost(model_, collective, bytes, config) > 0;
      const double us = priced ? TrueTime(cluster_, times_, collective, bytes, config) : -1;
      if (us > 0)
        file.rows.push_back({topology_, collective, bytes, config, false, Repeats(us, options, dice)});
    }
  }

  const Cluster& cluster_;
  std::string topology_;
  int n_nodes_;
  CollectiveTimes times_;
  CostModelInput model_;
};

// Draws 1 to 64 whole nodes, with at least 2 and at most 512 ranks.
int DrawRanks(const System& system, Dice& dice) {
  const int nodes = 1 << dice.Below(7);
  const int ranks = nodes * std::max(1, system.ranks_per_node);
  return std::clamp(ranks, 2, 512);
}

}  // namespace

Result<MeasurementFile> RandomClusters(std::span<const System> systems, const ClusterOptions& options) {
  if (systems.empty()) return MakeError(ErrorKind::kInvalidArgument, "no system to start from");
  MeasurementFile file;
  file.library = "simulated clusters";
  file.machine = "no machine: systems fitted to measured times, moved at random";
  for (int i = 0; i < options.count; ++i) {
    Dice dice(options.seed * 1000003 + static_cast<uint64_t>(i));
    const System& fitted = systems[static_cast<size_t>(i) % systems.size()];
    const Cluster cluster = Draw(fitted, options, dice);
    const int first = DrawRanks(fitted, dice);
    int second = DrawRanks(fitted, dice);
    while (second == first) second = DrawRanks(fitted, dice);
    for (const int ranks : {first, second}) {
      const std::string topology =
          fmt::format("simulated {}-{:03} from {} x{}", options.seed, i, fitted.name, ranks);
      ClusterSweep(cluster, topology, ranks).Append(options, dice, file);
    }
  }
  return file;
}

}  // namespace dynamiccl
