// SPDX-License-Identifier: Apache-2.0
// Builds cells from sweeps and from published tables.
#include "studies/headroom/timed_arms.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "src/base/statistics.h"
#include "tools/calibration/timed_systems.h"
#include "tools/report/choice_comparison.h"
#include "traces/format/measurement_file.h"

namespace dynamiccl {
namespace {

constexpr std::string_view kSeparator = " / ";

template <typename Number>
ArmTime TimeOf(const std::vector<Number>& repeats) {
  std::vector<double> halves[2];
  for (size_t i = 0; i < repeats.size(); ++i) halves[i % 2].push_back(static_cast<double>(repeats[i]));
  if (halves[1].empty()) halves[1] = halves[0];
  return {{MedianInPlace(halves[0]), MedianInPlace(halves[1])}, static_cast<int>(repeats.size())};
}

bool IsTimed(const ArmTime& time) {
  return time.halves[0] > 0 && time.halves[1] > 0;
}

// Whether the cell has a default and something to compare it with.
bool CanBeJudged(const ArmCell& cell) {
  return cell.arms.size() > 1 && cell.arms.contains(kDefaultArm);
}

std::string ArmName(const CollectiveConfig& config) {
  if (config.algorithm == Algorithm::kUndefined) return kDefaultArm;
  return config.protocol == Protocol::kUndefined ? std::string(Name(config.algorithm)) : Name(config);
}

// Splits a name into "MACHINE / RELEASE" and "SETTING". The setting is empty if the name has none.
std::pair<std::string, std::string> SplitSetting(const std::string& name) {
  const size_t end = name.rfind(kSeparator);
  if (end == std::string::npos) return {name, ""};
  return {name.substr(0, end), name.substr(end + kSeparator.size())};
}

// Gives a cell without an open choice its default (see CellsOfPublished).
void NameDefault(ArmCell& cell) {
  if (cell.arms.empty() || cell.arms.contains(kDefaultArm)) return;
  auto chosen = std::find_if(cell.arms.begin(), cell.arms.end(),
                             [](const auto& arm) { return arm.first.starts_with("default"); });
  if (chosen == cell.arms.end()) chosen = cell.arms.begin();
  auto node = cell.arms.extract(chosen);
  node.key() = kDefaultArm;
  cell.arms.insert(std::move(node));
}

}  // namespace

double ArmCell::Noise() const {
  std::vector<double> apart;
  for (const auto& [name, time] : arms) {
    if (time.repeats > 1) apart.push_back(std::fabs(std::log2(time.halves[0] / time.halves[1])));
  }
  return kSigmasOfMedianDeviation * MedianInPlace(apart);
}

std::vector<ArmCell> CellsOfSweep(const MeasurementFile& file) {
  std::vector<ArmCell> found;
  for (const SweepCell& swept : CellsOf(file)) {
    const auto context =
        std::find_if(file.contexts.begin(), file.contexts.end(),
                     [&](const MeasurementContext& c) { return c.topology == swept.topology; });
    if (context == file.contexts.end() || static_cast<int>(swept.collective) >= kTunableCollectives) continue;
    const Fabric& fabric = context->model.fabric;
    ArmCell cell{swept.topology, {}, swept.collective, fabric.n_ranks, fabric.n_nodes, swept.bytes, {}};
    if (fabric.intra.bandwidth_gbps > 0) cell.model = context->model;
    for (const Measurement* row : swept.rows) {
      const ArmTime time = TimeOf(row->microseconds);
      const bool forced = !row->is_default && !row->config.leaves_nccl_alone();
      if (IsTimed(time) && (forced || row->is_default))
        cell.arms.emplace(forced ? ArmName(row->config) : kDefaultArm, time);
    }
    if (CanBeJudged(cell)) found.push_back(std::move(cell));
  }
  return found;
}

std::vector<ArmCell> CellsOfPublished(const TimedSystems& systems) {
  using Key = std::tuple<std::string, Collective, int, int, uint64_t>;
  std::map<Key, ArmCell> cells;
  for (const auto& [name, key, repeats] : systems.Repeats()) {
    if (static_cast<int>(key.collective) >= kTunableCollectives) continue;
    const auto [place, setting] = SplitSetting(name);
    ArmCell& cell = cells[{place, key.collective, key.n_ranks, key.n_nodes, key.bytes}];
    cell.system = place;
    cell.collective = key.collective;
    cell.n_ranks = key.n_ranks;
    cell.n_nodes = key.n_nodes;
    cell.bytes = key.bytes;
    const bool open = key.config.algorithm == Algorithm::kUndefined;
    const ArmTime time = TimeOf(repeats);
    if (IsTimed(time)) cell.arms.emplace(open && !setting.empty() ? setting : ArmName(key.config), time);
  }
  std::vector<ArmCell> found;
  for (auto& [key, cell] : cells) {
    NameDefault(cell);
    if (CanBeJudged(cell)) found.push_back(std::move(cell));
  }
  return found;
}

Result<std::vector<ArmCell>> ReadCells(const std::string& path) {
  if (path.ends_with(".measurements")) {
    DYNAMICCL_TRY(const MeasurementFile file, ReadMeasurementFile(path));
    return CellsOfSweep(file);
  }
  TimedSystems systems;
  DYNAMICCL_CHECK_OK(systems.Read(path));
  return CellsOfPublished(systems);
}

}  // namespace dynamiccl
