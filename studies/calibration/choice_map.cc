// SPDX-License-Identifier: Apache-2.0
// Compares three choices in every cell of a sweep.
#include "studies/calibration/choice_map.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "src/collective/size_class.h"

namespace dynamiccl {
namespace {

// Time of the choice over that of the best config; 0 if the best was not timed.
double Ratio(const TimedConfig& choice, const TimedConfig& best) {
  return best.microseconds.median > 0 ? choice.microseconds.median / best.microseconds.median : 0;
}

// The (algorithm, protocol) pairs that were forced in the cell.
ConfigMask MeasuredIn(const SweepCell& cell) {
  ConfigMask mask;
  for (const Measurement* row : cell.rows) {
    if (!row->is_default && !row->config.leaves_nccl_alone())
      mask.set(ConfigIndex(row->config.algorithm, row->config.protocol));
  }
  return mask;
}

const CostModelInput* ModelOf(const std::vector<FittedModel>& models, const std::string& topology) {
  const auto found = std::find_if(models.begin(), models.end(),
                                  [&](const FittedModel& m) { return m.context.topology == topology; });
  return found == models.end() ? nullptr : &found->context.model;
}

// Share of cells in which the choice costs at least `least` times the best.
double Share(const ChoiceMap& map, TimedConfig MapRow::*choice, double least) {
  if (map.rows.empty()) return 0;
  const auto count = std::count_if(map.rows.begin(), map.rows.end(),
                                   [&](const MapRow& row) { return Ratio(row.*choice, row.best) >= least; });
  return static_cast<double>(count) / static_cast<double>(map.rows.size());
}

int Winners(const std::vector<MapRow>& rows) {
  std::set<std::tuple<Algorithm, Protocol, int>> winners;
  for (const MapRow& row : rows) {
    winners.insert({row.best.config.algorithm, row.best.config.protocol, row.best.config.channels});
  }
  return static_cast<int>(winners.size());
}

Json ToJson(const TimedConfig& choice) {
  return {{"config", Name(choice.config)}, {"median_us", choice.microseconds.median}};
}

}  // namespace

ChoiceMap MapChoices(const MeasurementFile& file, const std::vector<FittedModel>& models) {
  ChoiceMap map;
  for (const SweepCell& cell : CellsOf(file)) {
    const CostModelInput* const model = ModelOf(models, cell.topology);
    if (model == nullptr) continue;
    const CollectiveConfig choice = ModelsChoice(*model, cell.collective, cell.bytes, MeasuredIn(cell));
    MapRow row{cell.topology, cell.collective, cell.bytes,
               BestOf(cell),  DefaultOf(cell), ChoiceOf(cell, choice)};
    if (row.usual.microseconds.repeats == 0 || row.calibrated.microseconds.repeats == 0) continue;
    map.rows.push_back(std::move(row));
  }
  map.winners = Winners(map.rows);
  map.usual_share_11 = Share(map, &MapRow::usual, 1.1);
  map.usual_share_13 = Share(map, &MapRow::usual, 1.3);
  map.calibrated_share_11 = Share(map, &MapRow::calibrated, 1.1);
  map.calibrated_share_13 = Share(map, &MapRow::calibrated, 1.3);
  return map;
}

std::string Markdown(const ChoiceMap& map) {
  std::string text =
      "| topology | collective | bytes | best | us | default | us | default / best | calibrated default | us "
      "| "
      "calibrated / best |\n|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const MapRow& row : map.rows) {
    text += fmt::format("| {} | {} | {} | {} | {:.1f} | {} | {:.1f} | {:.2f} | {} | {:.1f} | {:.2f} |\n",
                        row.topology, Name(row.collective), FormatBytes(row.bytes), Name(row.best.config),
                        row.best.microseconds.median, Name(row.usual.config), row.usual.microseconds.median,
                        Ratio(row.usual, row.best), Name(row.calibrated.config),
                        row.calibrated.microseconds.median, Ratio(row.calibrated, row.best));
  }
  text += fmt::format(
      "\n{} cells, {} different winners. At least 1.1x and 1.3x of the best: default in {:.0f} % and {:.0f} "
      "% "
      "of the cells, calibrated default in {:.0f} % and {:.0f} %.\n",
      map.rows.size(), map.winners, 100 * map.usual_share_11, 100 * map.usual_share_13,
      100 * map.calibrated_share_11, 100 * map.calibrated_share_13);
  return text;
}

Json ToJson(const ChoiceMap& map) {
  Json rows = Json::array();
  for (const MapRow& row : map.rows) {
    rows.push_back({{"topology", row.topology},
                    {"collective", Name(row.collective)},
                    {"bytes", row.bytes},
                    {"best", ToJson(row.best)},
                    {"default", ToJson(row.usual)},
                    {"calibrated_default", ToJson(row.calibrated)}});
  }
  return {{"schema", 1},
          {"winners", map.winners},
          {"default_share", {{"1.1", map.usual_share_11}, {"1.3", map.usual_share_13}}},
          {"calibrated_share", {{"1.1", map.calibrated_share_11}, {"1.3", map.calibrated_share_13}}},
          {"cells", rows}};
}

}  // namespace dynamiccl
