// SPDX-License-Identifier: Apache-2.0
// Draws charts as inline SVG: times over sizes on logarithmic axes, step times over a run, stacked bars,
// columns over time, calls in a lane for each rank, and a map of choices. The charts need no script: a text
// is part of the drawing, or a title that appears when the pointer is over it.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace dynamiccl {

// A point and its error bar. The error bar is drawn only if `low` is positive and below `high`.
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
  // CSS class of the line in the page's styles: "default", "ours" or "best".
  std::string style;
  std::vector<ChartPoint> points;
};

// Returns a <figure> with a legend. x is bytes, y is microseconds. Points that are not positive are left out,
// since the axes are logarithmic. The result is empty if no point remains.
std::string SizeTimeChart(const std::string& caption, const std::vector<ChartSeries>& series);

// Puts the drawing `svg` into a <figure> with a caption. `width` and `height` are in units of the viewBox.
std::string ChartFigure(const std::string& caption, double width, double height, const std::string& svg);

// Returns a <figure> with a legend. x is the number of a training step, y is milliseconds; lines have the
// palette's colours. Empty if no point is above zero.
std::string StepCurves(const std::string& caption, const std::vector<ChartSeries>& series);

struct BarPart {
  std::string name;
  double value = 0;
};
struct Bar {
  std::string name;
  std::vector<BarPart> parts;
};

// Draws horizontal stacked bars on one linear scale. `unit` ("MiB") follows each bar's total. Empty if all
// values are 0.
std::string StackedBars(const std::string& caption, const std::vector<Bar>& bars, const std::string& unit);

// Columns over time, each stacked from one value for every name. Names keep their order and colour. All
// values have the same unit.
struct TimeColumns {
  std::vector<std::string> names;
  // columns[i][j] is the value of name j in column i.
  std::vector<std::vector<double>> columns;
  double length_ms = 0;
  // Unit of the values, such as "MiB".
  std::string unit;
  // Vertical lines at these times in ms, each with a short word such as "v2".
  std::vector<std::pair<double, std::string>> marks;
};
// Draws the columns above a time axis. Empty if all values are 0.
std::string ColumnsOverTime(const std::string& caption, const TimeColumns& columns);

// A coloured slice in one lane of a time chart, such as a call of one rank.
struct LaneSlice {
  size_t lane = 0;
  // Milliseconds.
  double start = 0;
  // Duration in milliseconds; negative: only the start is known.
  double length = -1;
  // Index in the chart's list of names. The name decides the colour.
  size_t name = 0;
  std::string title;
};
// Draws slices on one time axis, with a lane for each rank or process. Empty if there are no slices.
std::string SlicesInLanes(const std::string& caption, const std::vector<std::string>& lanes,
                          const std::vector<std::string>& names, const std::vector<LaneSlice>& slices,
                          double length_ms);

// One cell of a map of choices.
struct ChartMapCell {
  // Name of the chosen config, which decides the colour. Empty: nothing is known, and the cell stays blank.
  std::string choice;
  // Text of at most two characters inside the cell.
  std::string mark;
  std::string title;
};
struct ChartMapRow {
  std::string name;
  // The cells of the row, one for each column.
  std::vector<ChartMapCell> cells;
};
// Draws a map of choices. Cells whose choice is `plain` ("left to NCCL") have no colour.
std::string ChoiceMapChart(const std::string& caption, const std::vector<std::string>& columns,
                           const std::vector<ChartMapRow>& rows, const std::string& plain);

// Colour of a name as "#rrggbb". It is one of eight that people with colour blindness can distinguish (the
// first seven are from Okabe and Ito, "Color universal design", 2008). A collective has the same colour in
// every chart. The colour of any other name follows from the name's place in the chart.
const char* ChartColor(const std::string& name, size_t place);
// True if text on the colour that ChartColor returns for this name and place must be white to be legible.
bool ChartColorIsDark(const std::string& name, size_t place);

// A drawn legend, and its height in units of the viewBox.
struct ChartLegend {
  std::string svg;
  double height = 0;
};
// Draws a legend: the names with their colours, in rows that fit `width`.
ChartLegend LegendOf(const std::vector<std::string>& names, double width);

}  // namespace dynamiccl
