// SPDX-License-Identifier: Apache-2.0
// Simulates one step for each algorithm, size of the groups that share a model, and number of ranks.
#include "tools/simulate/scaling.h"

#include "src/simulator/event_simulation.h"

namespace dynamiccl {
namespace {

constexpr int kFewestRanks = 8, kMaxRanks = 4096;

// An algorithm, and over how many nodes the model is sharded.
struct Arrangement {
  Algorithm algorithm;
  // Number of nodes over which one copy of the model is sharded; 0: over all ranks.
  int shard_nodes;
};
constexpr Arrangement kArrangements[] = {{Algorithm::kRing, 0}, {Algorithm::kPat, 0},  {Algorithm::kRing, 1},
                                         {Algorithm::kTree, 1}, {Algorithm::kRing, 8}, {Algorithm::kPat, 8}};

Result<ScalingPoint> Scaled(FrameworkStep step, const System& system, const Arrangement& arrangement,
                            int ranks) {
  step.world = {ranks, 1, arrangement.shard_nodes * system.ranks_per_node};
  step.config.algorithm = arrangement.algorithm;
  DYNAMICCL_TRY(const FrameworkJob job, JobOfFramework(step, system));
  DYNAMICCL_TRY(const SimulationResult result, Simulate(job.job));
  std::string name(Name(arrangement.algorithm));
  if (arrangement.shard_nodes > 0) name += fmt::format(", shards of {}", step.world.shard);
  return ScalingPoint{ranks, std::move(name), result.finished_ns, result.observed[0].stalled_ns};
}

}  // namespace

Result<std::vector<ScalingPoint>> ScaleOut(FrameworkStep step, const System& system) {
  std::vector<ScalingPoint> points;
  for (const Arrangement& arrangement : kArrangements) {
    for (int ranks = kFewestRanks; ranks <= kMaxRanks; ranks *= 2) {
      const int shard = arrangement.shard_nodes * system.ranks_per_node;
      if (shard > 0 && (shard >= ranks || ranks % shard != 0)) continue;
      DYNAMICCL_TRY(ScalingPoint point, Scaled(step, system, arrangement, ranks));
      points.push_back(std::move(point));
    }
  }
  return points;
}

std::string FormatScaling(const std::vector<ScalingPoint>& points) {
  std::string text =
      fmt::format("{:<20} {:>6} {:>12} {:>12} {:>10}\n", "", "ranks", "step ms", "exposed ms", "share");
  for (const ScalingPoint& point : points) {
    text +=
        fmt::format("{:<20} {:>6} {:>12.1f} {:>12.1f} {:>8.1f} %\n", point.arrangement, point.ranks,
                    static_cast<double>(point.step_ns) * 1e-6, static_cast<double>(point.exposed_ns) * 1e-6,
                    100 * static_cast<double>(point.exposed_ns) / static_cast<double>(point.step_ns));
  }
  return text;
}

}  // namespace dynamiccl
