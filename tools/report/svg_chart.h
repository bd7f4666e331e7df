// SPDX-License-Identifier: Apache-2.0
// Charts as inline SVG: times over sizes on logarithmic axes, step times over a run, stacked bars, columns
// over time, slices in lanes, and a map of choices. They need no script: text is part of the drawing or of
// the titles that a pointer shows.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace dynamiccl {

// A point and its error bar, which is drawn only where `low` is positive and below `high`.
struct ChartPoint {
  double x = 0;
  double y = 0;
  // Lower end of the error bar.
  double low = 0;
  // Upper end of the error bar.
  double high = 0;
};

// One line of a chart.
struct ChartSeries {
  std::string name;
  // CSS class in the page's styles: "default", "ours" or "best".
  std::string style;
  std::vector<ChartPoint> points;
};

// A <figure> with a legend. x is bytes, y is microseconds. Points that are not positive are left out, since
// the axes are logarithmic; the chart is empty when none remains.
std::string SizeTimeChart(const std::string& caption, const std::vector<ChartSeries>& series);

// Wraps the drawing `svg` of the given size, in units of its viewBox, in a <figure> with a caption.
std::string ChartFigure(const std::string& caption, double width, double height, const std::string& svg);

// A <figure> with a legend: x is a step of a run, y is milliseconds; lines have the palette's colours. Empty
// without a point above zero.
std::string StepCurves(const std::string& caption, const std::vector<ChartSeries>& series);

struct BarPart {
  std::string name;
  double value = 0;
};
struct Bar {
  std::string name;
  std::vector<BarPart> parts;
};

// Horizontal stacked bars on one linear scale. `unit` follows the totals ("MiB"). Empty when all values are
// 0.
std::string StackedBars(const std::string& caption, const std::vector<Bar>& bars, const std::string& unit);

// Stacked columns over time. Names keep their order and colour; all values have the same unit.
struct TimeColumns {
  std::vector<std::string> names;
  // Each column has one value for every name.
  std::vector<std::vector<double>> columns;
  double length_ms = 0;
  // Unit of the values: "MiB".
  std::string unit;
  // Vertical lines: time in ms and a short word such as "v2".
  std::vector<std::pair<double, std::string>> marks;
};
// Draws the columns with an axis of time. Empty when all values are 0.
std::string ColumnsOverTime(const std::string& caption, const TimeColumns& columns);

// A bar in one lane.
struct LaneSlice {
  size_t lane = 0;
  // Milliseconds.
  double start = 0;
  // Milliseconds; negative: only the start is known.
  double length = -1;
  // Index into the names, which gives the colour.
  size_t name = 0;
  std::string title;
};
// Slices on one axis of time, with a lane for each rank or process. Empty without slices.
std::string SlicesInLanes(const std::string& caption, const std::vector<std::string>& lanes,
                          const std::vector<std::string>& names, const std::vector<LaneSlice>& slices,
                          double length_ms);

// One cell of a map of choices.
struct ChartMapCell {
  // Decides the colour. Empty: nothing is known, and the cell stays blank.
  std::string choice;
  // At most two characters inside the cell.
  std::string mark;
  std::string title;
};
struct ChartMapRow {
  std::string name;
  // One cell for each column.
  std::vector<ChartMapCell> cells;
};
// A map of choices. `plain` is the choice that is drawn without colour ("left to NCCL").
std::string ChoiceMapChart(const std::string& caption, const std::vector<std::string>& columns,
                           const std::vector<ChartMapRow>& rows, const std::string& plain);

// Colour of a name as "#rrggbb", from eight that people with colour blindness can distinguish (the first
// seven: Okabe and Ito, "Color universal design", 2008). A collective has the same colour in every chart; any
// other name has that of its place in the chart.
const char* ChartColor(const std::string& name, size_t place);
// Whether text on the colour ChartColor(name, place) must be white.
bool ChartColorIsDark(const std::string& name, size_t place);

// A drawn legend and the height that it takes.
struct ChartLegend {
  std::string svg;
  double height = 0;
};
// Names with their colours, in rows that fit `width`.
ChartLegend LegendOf(const std::vector<std::string>& names, double width);

}  // namespace dynamiccl
