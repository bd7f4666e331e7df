// SPDX-License-Identifier: Apache-2.0
// Charts as inline SVG: times over sizes on logarithmic axes, stacked bars, columns over time, slices in
// lanes, and a map of choices. No script: a chart's words stand in it, and in the titles that a pointer
// shows.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace dynamiccl {

struct ChartPoint {
  double x = 0;
  double y = 0;
  double low = 0;  // ends of the error bar; none where low is not below high
  double high = 0;
};

struct ChartSeries {
  std::string name;
  std::string style;  // class in the page's styles: "default", "ours" or "best"
  std::vector<ChartPoint> points;
};

// A <figure> with a legend. x is bytes, y is microseconds; points that are not positive are left out. Empty
// without any.
std::string SizeTimeChart(const std::string& caption, const std::vector<ChartSeries>& series);

struct BarPart {
  std::string name;
  double value = 0;
};
struct Bar {
  std::string name;
  std::vector<BarPart> parts;
};

// Horizontal stacked bars on one linear scale; `unit` follows the numbers ("MiB"). Empty when all values are
// 0.
std::string StackedBars(const std::string& caption, const std::vector<Bar>& bars, const std::string& unit);

// Stacked columns over time. Names keep their order and colour; values are of one unit.
struct TimeColumns {
  std::vector<std::string> names;
  std::vector<std::vector<double>> columns;  // each with a value for every name
  double length_ms = 0;
  std::string unit;                                   // of the values: "MiB"
  std::vector<std::pair<double, std::string>> marks;  // at ms, with a short word: "v2"
};
std::string ColumnsOverTime(const std::string& caption, const TimeColumns& columns);

struct LaneSlice {
  size_t lane = 0;
  double start = 0;    // ms
  double length = -1;  // negative: only its start is known
  size_t name = 0;     // into the names
  std::string title;
};
// Slices on one axis of time, a lane each for ranks or processes.
std::string SlicesInLanes(const std::string& caption, const std::vector<std::string>& lanes,
                          const std::vector<std::string>& names, const std::vector<LaneSlice>& slices,
                          double length_ms);

struct ChartMapCell {
  std::string choice;  // decides the colour; empty: nothing is known and the cell stays empty
  std::string mark;    // at most two letters inside
  std::string title;
};
struct ChartMapRow {
  std::string name;
  std::vector<ChartMapCell> cells;  // one for each column
};
// `plain` is the choice that is drawn without colour ("left to NCCL").
std::string ChoiceMapChart(const std::string& caption, const std::vector<std::string>& columns,
                           const std::vector<ChartMapRow>& rows, const std::string& plain);

// Colours that people with colour blindness tell apart too (Okabe and Ito, "Color universal design", 2008),
// and two more. A collective has its own in every chart; other names have those of their place in the chart.
const char* ChartColor(const std::string& name, size_t place);
// Whether letters on that colour are to be white.
bool ChartColorIsDark(const std::string& name, size_t place);

// Names with their colours in rows that fit the chart's width; `height` is what they take.
struct ChartLegend {
  std::string svg;
  double height = 0;
};
ChartLegend LegendOf(const std::vector<std::string>& names, double width);

}  // namespace dynamiccl
