// SPDX-License-Identifier: Apache-2.0
// Converts published times into the rows of a sweep.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "src/simulator/library_pick.h"
#include "studies/clusters/random_clusters.h"

namespace dynamiccl {
namespace {

// The cost model's protocol and channels for an algorithm. The result is undefined if the model prices none.
CollectiveConfig ModelsConfig(const CostModelInput& model, Collective collective, uint64_t bytes,
                              Algorithm algorithm) {
  ConfigMask mask;
  for (const Protocol protocol : {Protocol::kLL, Protocol::kLL128, Protocol::kSimple})
    mask.set(ConfigIndex(algorithm, protocol));
  CollectiveConfig config =
      CheapestConfig(EstimateCosts(model, collective, bytes, 1, mask & NcclConfigs(collective)));
  if (config.leaves_nccl_alone()) return config;
  config.channels = static_cast<uint8_t>(
      std::clamp(DefaultChannels(model, collective, bytes, config.algorithm, config.protocol), 1, 255));
  return config;
}

// The times as repeats. A single time is doubled, since readers split repeats into halves.
std::vector<float> TwiceAtLeast(const std::vector<double>& us) {
  std::vector<float> repeats(us.begin(), us.end());
  if (repeats.size() == 1) repeats.push_back(repeats[0]);
  return repeats;
}

}  // namespace

Result<MeasurementFile> SweepOfPublished(const TimedSystems& data, const std::string& name,
                                         const System& fitted) {
  MeasurementFile file;
  file.library = "published times";
  file.machine = name;
  std::set<int> known;
  bool forced = false;
  for (const auto& [system, cell, us] : data.Repeats()) {
    if (system != name || static_cast<int>(cell.collective) >= kTunableCollectives) continue;
    const std::string topology = fmt::format("{} x{}", name, cell.n_ranks);
    const CostModelInput model = LibraryView(fitted, cell.n_ranks, cell.n_nodes);
    if (known.insert(cell.n_ranks).second) file.contexts.push_back({topology, model});
    const bool open = cell.config.algorithm == Algorithm::kUndefined;
    const CollectiveConfig config =
        open ? kLeaveNcclAlone : ModelsConfig(model, cell.collective, cell.bytes, cell.config.algorithm);
    if (!open && config.leaves_nccl_alone()) continue;
    forced = forced || !open;
    file.rows.push_back({topology, cell.collective, cell.bytes, config, open, TwiceAtLeast(us)});
  }
  if (forced) return file;
  return MakeError(ErrorKind::kUnsupported,
                   "{}: no algorithm was forced there, so there is nothing to choose", name);
}

}  // namespace dynamiccl
