// SPDX-License-Identifier: Apache-2.0
// A line through the smallest and the largest size gives the latency and bandwidth of an algorithm. Latencies
// of different numbers of steps give base and hop.
#include "studies/calibration/two_point.h"

#include <algorithm>
#include <map>

namespace dynamiccl {
namespace {

// Least base and hop in microseconds. Neither can be zero, though noise may make it so.
constexpr double kLeastUs = 0.01;
// The model's Tree formulas (src/cost_model/nccl_model.cc): algorithm bandwidth = bus bandwidth / 2.
constexpr double kTreeShare = 0.5;

// Latency and inverse bandwidth of a line through the smallest and the largest size.
struct Line {
  double latency_us = 0;
  double us_per_byte = 0;
};

using Key = std::tuple<Collective, Algorithm, Protocol>;

// Lines of all keys with at least two sizes, from the smallest sample of each cell.
std::map<Key, Line> LinesOf(const MeasurementFile& file, const std::string& topology) {
  std::map<Key, std::map<uint64_t, double>> smallest;
  for (const Measurement& row : file.rows) {
    if (row.topology != topology || row.is_default || row.config.channels != 1) continue;
    const double time = *std::min_element(row.microseconds.begin(), row.microseconds.end());
    smallest[{row.collective, row.config.algorithm, row.config.protocol}][row.bytes] = time;
  }
  std::map<Key, Line> lines;
  for (const auto& [key, times] : smallest) {
    if (times.size() < 2) continue;
    const auto [small, small_us] = *times.begin();
    const auto [large, large_us] = *times.rbegin();
    const double slope = std::max(0.0, (large_us - small_us) / static_cast<double>(large - small));
    lines[key] = {std::max(kLeastUs, small_us - static_cast<double>(small) * slope), slope};
  }
  return lines;
}

// GB/s of an algorithm from the slope of its line; 0 for a flat line.
double Gbps(const Line& line) {
  return line.us_per_byte > 0 ? 1e-3 / line.us_per_byte : 0;
}

// The lines of one topology of two ranks, from which Costs computes every pair.
class Topology {
 public:
  Topology(const MeasurementContext& context, std::map<Key, Line> lines)
      : context_(context), lines_(std::move(lines)) {}

  std::vector<SoftwareCost> Costs() const {
    std::vector<SoftwareCost> costs;
    for (int p = 0; p < kProtocols; ++p) {
      const auto protocol = static_cast<Protocol>(p);
      const auto ring = Ring(protocol);
      if (!ring) continue;
      costs.push_back(*ring);
      Add(costs, Tree(protocol, ring->base_us));
      if (protocol != Protocol::kSimple) continue;
      Add(costs, OnePass(ring->base_us));
      Add(costs, Pat(ring->base_us));
    }
    return costs;
  }

 private:
  static void Add(std::vector<SoftwareCost>& costs, const std::optional<SoftwareCost>& cost) {
    if (cost) costs.push_back(*cost);
  }

  const Line* Find(Collective collective, Algorithm algorithm, Protocol protocol) const {
    const auto found = lines_.find({collective, algorithm, protocol});
    return found == lines_.end() ? nullptr : &found->second;
  }

  // One-way latency of the link between the two ranks.
  double LinkLatency() const {
    const Fabric& fabric = context_.model.fabric;
    return fabric.n_nodes > 1 ? fabric.inter.latency_us : fabric.intra.latency_us;
  }

  // Subtracts the link's latency from the hop.
  SoftwareCost Cost(Algorithm algorithm, Protocol protocol, double base, double hop, double bus) const {
    return {context_.topology,
            algorithm,
            protocol,
            std::max(kLeastUs, base),
            std::max(kLeastUs, hop - LinkLatency()),
            bus};
  }

  std::optional<SoftwareCost> Ring(Protocol protocol) const {
    const Line* const gather = Find(Collective::kAllGather, Algorithm::kRing, protocol);
    const Line* const reduce = Find(Collective::kAllReduce, Algorithm::kRing, protocol);
    if (gather == nullptr || reduce == nullptr) return std::nullopt;
    // With two ranks AllReduce takes two steps and AllGather one. AllReduce's algorithm bandwidth is then the
    // bus.
    const double hop = reduce->latency_us - gather->latency_us;
    return Cost(Algorithm::kRing, protocol, gather->latency_us - hop, hop, Gbps(*reduce));
  }

  std::optional<SoftwareCost> Tree(Protocol protocol, double base) const {
    const Line* const line = Find(Collective::kAllReduce, Algorithm::kTree, protocol);
    if (line == nullptr) return std::nullopt;
    return Cost(Algorithm::kTree, protocol, base, (line->latency_us - base) / 2, Gbps(*line) / kTreeShare);
  }

  // NVLS's AllReduce, emulated in one pass.
  std::optional<SoftwareCost> OnePass(double base) const {
    const Line* const line = Find(Collective::kAllReduce, Algorithm::kNvls, Protocol::kSimple);
    if (line == nullptr) return std::nullopt;
    return Cost(Algorithm::kNvls, Protocol::kSimple, base, line->latency_us - base, Gbps(*line));
  }

  std::optional<SoftwareCost> Pat(double base) const {
    const Line* const line = Find(Collective::kAllGather, Algorithm::kPat, Protocol::kSimple);
    if (line == nullptr) return std::nullopt;
    return Cost(Algorithm::kPat, Protocol::kSimple, base, line->latency_us - base, Gbps(*line));
  }

  const MeasurementContext& context_;
  std::map<Key, Line> lines_;
};

}  // namespace

Result<std::vector<SoftwareCost>> TwoPointCosts(const MeasurementFile& file) {
  std::vector<SoftwareCost> costs;
  for (const MeasurementContext& context : file.contexts) {
    if (context.model.fabric.n_ranks != 2) continue;
    const auto found = Topology(context, LinesOf(file, context.topology)).Costs();
    costs.insert(costs.end(), found.begin(), found.end());
  }
  if (!costs.empty()) return costs;
  return WithHint(
      MakeError(ErrorKind::kInvalidArgument,
                "no topology of two ranks has Ring AllGather and AllReduce at two sizes with one channel"),
      "docs/hostccl_calibration.md has the sweep to make");
}

std::string SourceLines(const std::vector<SoftwareCost>& costs) {
  std::string text;
  for (const SoftwareCost& cost : costs) {
    text +=
        fmt::format("    {{Algorithm::k{}, Protocol::k{}, {:.2f}, {:.2f}}},  // {}: {:.2f} GB/s a channel\n",
                    cost.algorithm == Algorithm::kNvls  ? "Nvls"
                    : cost.algorithm == Algorithm::kPat ? "Pat"
                                                        : Name(cost.algorithm),
                    Name(cost.protocol), cost.base_us, cost.hop_us, cost.topology, cost.bus_gbps);
  }
  return text;
}

}  // namespace dynamiccl
