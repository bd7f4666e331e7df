// SPDX-License-Identifier: Apache-2.0
// The sections of the report about a sweep. Each topology gets charts of time over size and a table.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "src/collective/size_class.h"
#include "tools/report/choice_comparison.h"
#include "tools/report/report.h"
#include "tools/report/svg_chart.h"

namespace dynamiccl {
namespace {

// The lines of the chart for one collective.
struct Curves {
  ChartSeries by_default{"default", "default", {}};
  ChartSeries ours{"ours", "ours", {}};
  ChartSeries best{"best of sweep", "best", {}};
};

ChartPoint PointOf(uint64_t bytes, const Timing& timing) {
  return {static_cast<double>(bytes), timing.median, timing.low, timing.high};
}

void SortByX(ChartSeries& series) {
  std::sort(series.points.begin(), series.points.end(),
            [](const ChartPoint& a, const ChartPoint& b) { return a.x < b.x; });
}

// Adds a point to the line `ours`: the time of the policy's choice for one collective and size. Only sizes of
// the evaluated job, and sizes that the agents did not see in training, have such a time.
void AddOurs(const DemoResult* demo, const SweepCell& cell, ChartSeries& ours) {
  if (demo == nullptr) return;
  const auto same = [&](const ChoiceRow& row) {
    return row.collective == Name(cell.collective) && row.bytes == cell.bytes &&
           row.topology == cell.topology;
  };
  const auto row = std::find_if(demo->choices.begin(), demo->choices.end(), same);
  if (row != demo->choices.end() && row->our_us.repeats > 0)
    ours.points.push_back(PointOf(cell.bytes, row->our_us));
}

std::string Chart(const std::string& collective, Curves& curves) {
  SortByX(curves.by_default);
  SortByX(curves.ours);
  SortByX(curves.best);
  std::vector<ChartSeries> series{curves.by_default, curves.best};
  if (!curves.ours.points.empty()) series.push_back(curves.ours);
  return SizeTimeChart(collective, series);
}

// The texts of the table row for one collective and size.
std::vector<std::string> Cells(const SweepCell& cell, const TimedConfig& by_default,
                               const TimedConfig& best) {
  const double saved = by_default.microseconds.median > 0
                           ? 100 * (1 - best.microseconds.median / by_default.microseconds.median)
                           : 0;
  return {
      std::string(Name(cell.collective)),
      FormatBytes(cell.bytes),
      Name(by_default.config),
      by_default.microseconds.repeats == 0 ? "not measured"
                                           : fmt::format("{:.0f}", by_default.microseconds.median),
      Name(best.config),
      fmt::format("{:.0f}", best.microseconds.median),
      ClearlyDiffer(by_default.microseconds, best.microseconds) ? fmt::format("{:+.0f} %", -saved) : "noise",
      std::to_string(cell.rows.size())};
}

// The section about one topology: a chart for each collective, and a table of all its collectives and sizes.
HtmlSection TopologySection(const std::string& title, const std::vector<SweepCell>& cells,
                            const DemoResult* demo) {
  HtmlTable table({{"collective"},
                   {"bytes", true},
                   {"default"},
                   {"us", true},
                   {"best"},
                   {"us", true},
                   {"best against default", true},
                   {"configs measured", true}});
  std::map<std::string, Curves> curves;
  for (const SweepCell& cell : cells) {
    const TimedConfig by_default = DefaultOf(cell);
    const TimedConfig best = BestOf(cell);
    table.AddRow(Cells(cell, by_default, best));
    Curves& lines = curves[std::string(Name(cell.collective))];
    lines.by_default.points.push_back(PointOf(cell.bytes, by_default.microseconds));
    lines.best.points.push_back(PointOf(cell.bytes, best.microseconds));
    AddOurs(demo, cell, lines.ours);
  }
  std::string charts;
  for (auto& [collective, lines] : curves) charts += Chart(collective, lines);
  return {"", title, "<div class=\"charts\">\n" + charts + "</div>\n" + table.Html()};
}

}  // namespace

std::vector<HtmlSection> MeasurementSections(const NamedMeasurements& measurements, const DemoResult* demo,
                                             const std::string& only) {
  std::map<std::string, std::vector<SweepCell>> by_topology;
  for (SweepCell& cell : CellsOf(measurements.file)) {
    if (only.empty() || only == cell.topology) by_topology[cell.topology].push_back(std::move(cell));
  }
  const std::string file = std::filesystem::path(measurements.path).filename().string();
  std::vector<HtmlSection> sections;
  for (const auto& [topology, cells] : by_topology) {
    sections.push_back(TopologySection(fmt::format("Sweep {}: {}", file, topology), cells, demo));
  }
  return sections;
}

}  // namespace dynamiccl
