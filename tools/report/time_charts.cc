// SPDX-License-Identifier: Apache-2.0
// Draws the charts with a time axis: stacked columns, and slices in lanes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/report/html.h"
#include "tools/report/svg_chart.h"

namespace dynamiccl {
namespace {

// Width of the chart in units of its viewBox.
constexpr double kWidth = 460;
// Space left of the chart, in units of the viewBox, for "8.53 MiB" or "rank 12" at the larger text size of
// phones.
constexpr double kLeft = 72;
constexpr double kRight = 8;
constexpr double kPlotHeight = 130;
constexpr double kAxisHeight = 22;
constexpr double kMarkHeight = 14;
constexpr double kLaneHeight = 18;
constexpr double kLanePitch = 24;
// Least width of a drawn call in units of the viewBox, so that it can be seen.
constexpr double kLeastWidth = 1;

// Horizontal position of a time. A time outside of the shown stretch is moved to its nearer end.
double X(double at_ms, double length_ms) {
  return kLeft + std::clamp(at_ms / length_ms, 0.0, 1.0) * (kWidth - kLeft - kRight);
}

// A time as text, in the unit that suits the length of the axis.
std::string TimeText(double ms, double length_ms) {
  if (length_ms >= 2000) return fmt::format("{:.4g} s", ms / 1000);
  return length_ms >= 2 ? fmt::format("{:.4g} ms", ms) : fmt::format("{:.4g} us", ms * 1000);
}

// Distance between the labels of an axis: 1, 2 or 5 times a power of ten, such that there are at most six
// intervals.
double TickOf(double length) {
  const double decade = std::pow(10, std::floor(std::log10(length / 5)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (length / (decade * factor) <= 6) return decade * factor;
  }
  return decade * 10;
}

std::string TimeAxis(double top, double bottom, double length_ms) {
  std::string svg;
  // The factor makes sure that rounding errors of the sum do not drop the last label.
  for (double at = 0, tick = TickOf(length_ms); at <= length_ms * 1.0001; at += tick) {
    const double x = X(at, length_ms);
    svg += fmt::format("<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>",
                       x, top, bottom);
    const char* const anchor = x > kWidth - 30 ? "end" : "middle";
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>", x, bottom + 14, anchor,
                       TimeText(at, length_ms));
  }
  return svg;
}

std::string Figure(const std::string& caption, double height, const std::string& svg) {
  return ChartFigure(caption, kWidth, height, svg);
}

double LargestColumn(const TimeColumns& columns) {
  double largest = 0;
  for (const auto& column : columns.columns) {
    double sum = 0;
    for (const double value : column) sum += value;
    largest = std::max(largest, sum);
  }
  return largest;
}

std::string DrawColumns(const TimeColumns& columns, double bottom, double pixels_per_unit) {
  std::string svg;
  const double wide = (kWidth - kLeft - kRight) / static_cast<double>(columns.columns.size());
  for (size_t i = 0; i < columns.columns.size(); ++i) {
    double y = bottom;
    for (size_t name = 0; name < columns.columns[i].size(); ++name) {
      const double high = columns.columns[i][name] * pixels_per_unit;
      if (high <= 0) continue;
      y -= high;
      svg += fmt::format("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" fill=\"{}\"/>",
                         kLeft + wide * static_cast<double>(i), y, wide, high,
                         ChartColor(columns.names[name], name));
    }
  }
  return svg;
}

// Draws a vertical line for each mark. A word that would overlap the previous one is left out, but its line
// is drawn.
std::string DrawMarks(const TimeColumns& columns, double top, double bottom) {
  std::string svg;
  double free_from = 0;
  for (const auto& [at_ms, word] : columns.marks) {
    const double x = X(at_ms, columns.length_ms);
    svg += fmt::format(
        "<line class=\"mark\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" "
        "y2=\"{2:.1f}\"><title>{3}</title></line>",
        x, top, bottom, EscapeHtml(word));
    // Half of the word's width in units of the viewBox. A letter is 7.2 units wide.
    const double half = 3.6 * static_cast<double>(word.size());
    if (x - half < free_from || x + half > kWidth) continue;
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>", x, top - 3,
                       EscapeHtml(word));
    free_from = x + half + 4;
  }
  return svg;
}

std::string DrawSlice(const LaneSlice& slice, const std::string& name, double top, double length_ms) {
  const double x = X(slice.start, length_ms);
  const double wide =
      std::max(slice.length < 0 ? kLeastWidth : X(slice.start + slice.length, length_ms) - x, kLeastWidth);
  return fmt::format(
      "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\"><title>{}</title></rect>",
      x, top + kLanePitch * static_cast<double>(slice.lane), wide, kLaneHeight, ChartColor(name, slice.name),
      EscapeHtml(slice.title));
}

}  // namespace

std::string ColumnsOverTime(const std::string& caption, const TimeColumns& columns) {
  const double largest = LargestColumn(columns);
  if (largest <= 0 || columns.length_ms <= 0) return {};
  const ChartLegend legend = LegendOf(columns.names, kWidth);
  const double top = legend.height + (columns.marks.empty() ? 0 : kMarkHeight);
  const double bottom = top + kPlotHeight;
  std::string svg = legend.svg + TimeAxis(top, bottom, columns.length_ms);
  for (const double share : {0.5, 1.0}) {
    const double y = bottom - share * kPlotHeight;
    svg += fmt::format("<line class=\"axis\" x1=\"{1}\" x2=\"{2}\" y1=\"{0:.1f}\" y2=\"{0:.1f}\"/>", y, kLeft,
                       kWidth - kRight);
    svg += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:.3g} {}</text>", kLeft - 4, y + 4,
                       share * largest, EscapeHtml(columns.unit));
  }
  svg += DrawColumns(columns, bottom, kPlotHeight / largest) + DrawMarks(columns, top, bottom);
  return Figure(caption, bottom + kAxisHeight, svg);
}

std::string SlicesInLanes(const std::string& caption, const std::vector<std::string>& lanes,
                          const std::vector<std::string>& names, const std::vector<LaneSlice>& slices,
                          double length_ms) {
  if (slices.empty() || length_ms <= 0) return {};
  const ChartLegend legend = LegendOf(names, kWidth);
  const double top = legend.height;
  const double bottom = top + kLanePitch * static_cast<double>(lanes.size());
  std::string svg = legend.svg + TimeAxis(top, bottom, length_ms);
  for (size_t i = 0; i < lanes.size(); ++i) {
    svg += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>", kLeft - 6,
                       top + kLanePitch * static_cast<double>(i) + 13, EscapeHtml(lanes[i]));
  }
  for (const LaneSlice& slice : slices) svg += DrawSlice(slice, names[slice.name], top, length_ms);
  return Figure(caption, bottom + kAxisHeight, svg);
}

}  // namespace dynamiccl
