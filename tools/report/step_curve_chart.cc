// SPDX-License-Identifier: Apache-2.0
// Draws a chart of step times over the steps of a run, with linear axes that start at zero.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/report/html.h"
#include "tools/report/svg_chart.h"

namespace dynamiccl {
namespace {

// Size of the chart in units of its viewBox, and the room for labels in it.
constexpr double kWidth = 460, kHeight = 250;
constexpr double kLeft = 56, kRight = 12, kBottom = 26;

struct Axes {
  double x_high = 0, y_high = 0, top = 0;

  double X(double step) const { return kLeft + step / x_high * (kWidth - kLeft - kRight); }
  double Y(double ms) const { return kHeight - kBottom - ms / y_high * (kHeight - top - kBottom); }
};

// Returns the distance between grid lines, such that about `lines` lines fit between zero and `high`. It is
// 1, 2 or 5 times a power of ten.
double RoundStep(double high, int lines) {
  const double rough = high / lines, decade = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * decade >= rough) return factor * decade;
  }
  return 10 * decade;
}

std::string Grid(const Axes& axes) {
  std::string svg =
      fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">step</text>", kLeft - 12, kHeight - 8);
  const double x_step = RoundStep(axes.x_high, 6), y_step = RoundStep(axes.y_high, 5);
  for (double step = 0; step <= axes.x_high; step += x_step)
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.0f}</text>", axes.X(step),
                       kHeight - 8, step);
  for (double ms = 0; ms <= axes.y_high; ms += y_step) {
    svg += fmt::format("<line class=\"axis\" x1=\"{1}\" x2=\"{2}\" y1=\"{0:.1f}\" y2=\"{0:.1f}\"/>",
                       axes.Y(ms), kLeft, kWidth - kRight);
    svg += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:g} ms</text>", kLeft - 4,
                       axes.Y(ms) + 4, ms);
  }
  return svg;
}

std::string Curve(const ChartSeries& series, size_t place, const Axes& axes) {
  std::string points;
  for (const ChartPoint& point : series.points)
    points += fmt::format("{:.1f},{:.1f} ", axes.X(point.x), axes.Y(point.y));
  return fmt::format(
      "<polyline fill=\"none\" stroke-width=\"1.5\" stroke=\"{}\" points=\"{}\"><title>{}</title></polyline>",
      ChartColor(series.name, place), points, EscapeHtml(series.name));
}

}  // namespace

std::string StepCurves(const std::string& caption, const std::vector<ChartSeries>& series) {
  Axes axes;
  std::vector<std::string> names;
  for (const ChartSeries& line : series) {
    names.push_back(line.name);
    for (const ChartPoint& point : line.points) {
      axes.x_high = std::max(axes.x_high, point.x);
      axes.y_high = std::max(axes.y_high, point.y);
    }
  }
  if (axes.x_high <= 0 || axes.y_high <= 0) return {};
  const ChartLegend legend = LegendOf(names, kWidth);
  axes.top = legend.height + 6;
  std::string svg = legend.svg + Grid(axes);
  for (size_t i = 0; i < series.size(); ++i) svg += Curve(series[i], i, axes);
  return ChartFigure(caption, kWidth, kHeight, svg);
}

}  // namespace dynamiccl
