// SPDX-License-Identifier: Apache-2.0
// Draws a chart of times over sizes, with logarithmic axes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/collective/size_class.h"
#include "tools/report/html.h"
#include "tools/report/svg_chart.h"

namespace dynamiccl {
namespace {

// Size of the chart in units of its viewBox; the page scales it to the width of its column.
constexpr double kWidth = 460;
constexpr double kHeight = 270;
// Space left of the chart, in units of the viewBox, for a label as long as "10000 us".
constexpr double kLeft = 62;
constexpr double kRight = 12;
// Space above the chart for the legend, in units of the viewBox.
constexpr double kTop = 26;
constexpr double kBottom = 28;

// The ranges of both axes of a chart. Member functions return where a value lies in the drawing.
struct Frame {
  double x_low = std::numeric_limits<double>::max();
  double x_high = 0;
  double y_low = std::numeric_limits<double>::max();
  double y_high = 0;

  double X(double value) const { return kLeft + Share(value, x_low, x_high) * (kWidth - kLeft - kRight); }
  double Y(double value) const {
    return kHeight - kBottom - Share(value, y_low, y_high) * (kHeight - kTop - kBottom);
  }
  // Position of `value` between `low` and `high` on a logarithmic axis, from 0 to 1. A range of one value is
  // drawn in the middle.
  static double Share(double value, double low, double high) {
    return high > low ? std::log(value / low) / std::log(high / low) : 0.5;
  }
};

// True if both coordinates of the point are positive, so that logarithmic axes can show it.
bool Drawable(const ChartPoint& point) {
  return point.x > 0 && point.y > 0;
}
bool HasErrorBar(const ChartPoint& point) {
  return point.low > 0 && point.low < point.high;
}

// Returns axes whose ranges include all points with their error bars.
Frame FrameOf(const std::vector<ChartSeries>& series) {
  Frame frame;
  for (const ChartSeries& line : series) {
    for (const ChartPoint& point : line.points) {
      if (!Drawable(point)) continue;
      frame.x_low = std::min(frame.x_low, point.x);
      frame.x_high = std::max(frame.x_high, point.x);
      frame.y_low = std::min(frame.y_low, HasErrorBar(point) ? point.low : point.y);
      frame.y_high = std::max(frame.y_high, HasErrorBar(point) ? point.high : point.y);
    }
  }
  return frame;
}

// Draws vertical lines and labels at sizes that are powers of two. At most six labels fit the width.
std::string VerticalGrid(const Frame& frame) {
  std::string svg;
  const int first = static_cast<int>(std::ceil(std::log2(frame.x_low)));
  const int last = static_cast<int>(std::floor(std::log2(frame.x_high)));
  const int step = std::max(1, (last - first) / 6 + 1);  // at most six labels fit
  for (int power = first; power <= last; power += step) {
    const double x = frame.X(std::exp2(power));
    svg += fmt::format("<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/>", x, kTop,
                       kHeight - kBottom);
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>", x, kHeight - 10,
                       FormatBytes(uint64_t{1} << power));
  }
  return svg;
}

std::string HorizontalGrid(const Frame& frame) {
  std::string svg;
  // Draw horizontal lines at 1, 2 and 5 times powers of ten, or only at powers of ten if the range is wide.
  const bool wide = frame.y_high / frame.y_low > 50;
  for (double decade = std::pow(10, std::floor(std::log10(frame.y_low))); decade <= frame.y_high;
       decade *= 10) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double value = decade * factor;
      if (value < frame.y_low || value > frame.y_high || (wide && factor != 1.0)) continue;
      const double y = frame.Y(value);
      svg += fmt::format("<line class=\"axis\" x1=\"{1}\" x2=\"{2}\" y1=\"{0:.1f}\" y2=\"{0:.1f}\"/>", y,
                         kLeft, kWidth - kRight);
      svg += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:.0f} us</text>", kLeft - 4, y + 4,
                         value);
    }
  }
  return svg;
}

std::string Line(const ChartSeries& series, const Frame& frame) {
  std::string points;
  std::string marks;
  const std::string style = EscapeHtml(series.style);
  for (const ChartPoint& point : series.points) {
    if (!Drawable(point)) continue;
    const double x = frame.X(point.x);
    points += fmt::format("{:.1f},{:.1f} ", x, frame.Y(point.y));
    marks += fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\"/>", style, x,
                         frame.Y(point.y));
    if (!HasErrorBar(point)) continue;
    marks += fmt::format("<line class=\"{0}\" x1=\"{1:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{3:.1f}\"/>",
                         style, x, frame.Y(point.low), frame.Y(point.high));
  }
  return fmt::format("<polyline class=\"{}\" points=\"{}\"/>{}", style, points, marks);
}

std::string Legend(const std::vector<ChartSeries>& series) {
  std::string svg;
  double x = kLeft;
  for (const ChartSeries& line : series) {
    svg += fmt::format(
        "<polyline class=\"{}\" points=\"{:.0f},10 {:.0f},10\"/><text x=\"{:.0f}\" y=\"14\">{}</text>",
        EscapeHtml(line.style), x, x + 18, x + 22, EscapeHtml(line.name));
    // A name in the legend takes 36 units of the viewBox for its piece of line and the gaps, and 6.5 units
    // for each letter.
    x += 36 + 6.5 * static_cast<double>(line.name.size());
  }
  return svg;
}

}  // namespace

std::string SizeTimeChart(const std::string& caption, const std::vector<ChartSeries>& series) {
  const Frame frame = FrameOf(series);
  if (frame.x_high <= 0) return {};
  std::string svg = VerticalGrid(frame) + HorizontalGrid(frame) + Legend(series);
  for (const ChartSeries& line : series) svg += Line(line, frame);
  return ChartFigure(caption, kWidth, kHeight, svg);
}

}  // namespace dynamiccl
