// SPDX-License-Identifier: Apache-2.0
// Splits the repeats of each measured config into two halves: one picks the best config, the other gives its
// time.
#include "tools/report/choice_comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <tuple>

namespace dynamiccl {
namespace {

// The two halves of a config's repeats: one to pick the best config, one to time it.
enum class Half { kPicking, kTiming };

// Summary of one half of the repeats. Repeats of even index pick the best config, and those of odd index give
// its time. A single repeat does both.
Timing TimingOf(const Measurement& row, Half half) {
  std::vector<double> samples;
  for (size_t i = 0; i < row.microseconds.size(); ++i) {
    const bool picks = i % 2 == 0;
    if (picks == (half == Half::kPicking) || row.microseconds.size() == 1)
      samples.push_back(row.microseconds[i]);
  }
  return Summarize(std::move(samples));
}

TimedConfig Timed(const Measurement& row) {
  return {row.config, TimingOf(row, Half::kTiming)};
}

// The measurement of the library's own choice; null if the sweep did not measure it.
const Measurement* DefaultRow(const SweepCell& cell) {
  const auto row =
      std::find_if(cell.rows.begin(), cell.rows.end(), [](const Measurement* m) { return m->is_default; });
  return row == cell.rows.end() ? nullptr : *row;
}

}  // namespace

std::vector<SweepCell> CellsOf(const MeasurementFile& file) {
  std::vector<SweepCell> cells;
  std::map<std::tuple<std::string_view, Collective, uint64_t>, size_t> places;
  for (const Measurement& row : file.rows) {
    const auto [place, is_new] = places.try_emplace({row.topology, row.collective, row.bytes}, cells.size());
    if (is_new) cells.push_back({row.topology, row.collective, row.bytes, {}});
    cells[place->second].rows.push_back(&row);
  }
  return cells;
}

TimedConfig DefaultOf(const SweepCell& cell) {
  const Measurement* row = DefaultRow(cell);
  return row == nullptr ? TimedConfig{} : Timed(*row);
}

TimedConfig BestOf(const SweepCell& cell) {
  const Measurement* best = nullptr;
  double best_median = 0;
  for (const Measurement* row : cell.rows) {
    const Timing picked = TimingOf(*row, Half::kPicking);
    if (picked.repeats == 0 || (best != nullptr && picked.median >= best_median)) continue;
    best = row;
    best_median = picked.median;
  }
  return best == nullptr ? TimedConfig{} : Timed(*best);
}

TimedConfig ChoiceOf(const SweepCell& cell, const CollectiveConfig& choice) {
  if (choice.leaves_nccl_alone()) return {kLeaveNcclAlone, DefaultOf(cell).microseconds};
  const Measurement* default_row = DefaultRow(cell);
  // If a choice leaves the number of channels to NCCL, compare the number that NCCL used by default.
  const bool channels_open = choice.channels == 0 && default_row != nullptr;
  const int wanted = channels_open ? default_row->config.channels : choice.channels;
  const auto distance = [&](const Measurement* row) { return std::abs(row->config.channels - wanted); };
  const Measurement* nearest = nullptr;
  for (const Measurement* row : cell.rows) {
    const CollectiveConfig& config = row->config;
    if (row->is_default || config.algorithm != choice.algorithm || config.protocol != choice.protocol)
      continue;
    if (nearest == nullptr || distance(row) < distance(nearest)) nearest = row;
  }
  return nearest == nullptr ? TimedConfig{choice, {}}
                            : TimedConfig{choice, TimingOf(*nearest, Half::kTiming)};
}

std::string Name(const CollectiveConfig& config) {
  if (config.leaves_nccl_alone()) return "left to NCCL";
  const std::string channels = config.channels == 0 ? "" : fmt::format(" x{}", config.channels);
  return fmt::format("{} {}{}", Name(config.algorithm), Name(config.protocol), channels);
}

Json TimingJson(const Timing& timing) {
  return timing.repeats == 0 ? Json() : Json(nlohmann::json(timing));
}

Json CellsJson(const MeasurementFile& file) {
  Json rows = Json::array();
  for (const SweepCell& cell : CellsOf(file)) {
    const TimedConfig by_default = DefaultOf(cell);
    const TimedConfig best = BestOf(cell);
    rows.push_back({{"topology", cell.topology},
                    {"collective", Name(cell.collective)},
                    {"bytes", cell.bytes},
                    {"default", Name(by_default.config)},
                    {"default_us", TimingJson(by_default.microseconds)},
                    {"best", Name(best.config)},
                    {"best_us", TimingJson(best.microseconds)}});
  }
  return rows;
}

Result<std::string> OneTopology(const std::vector<SweepCell>& cells, const std::string& wanted,
                                const std::string& source) {
  std::set<std::string> topologies;
  for (const SweepCell& cell : cells) topologies.insert(cell.topology);
  if (topologies.contains(wanted)) return wanted;
  if (wanted.empty() && topologies.size() == 1) return *topologies.begin();
  const std::string what = wanted.empty() ? fmt::format("{} topologies", topologies.size())
                                          : fmt::format("no topology '{}'", wanted);
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "{}: {} to take times from", source, what),
                  fmt::format("name one with --measured-topology: {}", fmt::join(topologies, ", ")));
}

}  // namespace dynamiccl
