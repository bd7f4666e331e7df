// SPDX-License-Identifier: Apache-2.0
// Draws horizontal stacked bars.
#include <fmt/format.h>

#include <algorithm>

#include "tools/report/html.h"
#include "tools/report/svg_chart.h"

namespace dynamiccl {
namespace {

// Size of the chart in units of its viewBox.
constexpr double kWidth = 460;
// Least space left of the bars for their names, in units of the viewBox.
constexpr double kLeast = 64;
// Width of a letter in units of the viewBox, at the larger text size that phones use, in a wide font.
constexpr double kLetter = 8.2;
// Space right of the bars for their totals, in units of the viewBox.
constexpr double kRight = 92;
constexpr double kBarHeight = 20;
// Distance from one bar to the next, in units of the viewBox.
constexpr double kPitch = 28;

double Total(const Bar& bar) {
  double total = 0;
  for (const BarPart& part : bar.parts) total += part.value;
  return total;
}

// Names of the bars' parts in the order of first appearance, so that a name has the same colour in every bar.
std::vector<std::string> PartNames(const std::vector<Bar>& bars) {
  std::vector<std::string> names;
  for (const Bar& bar : bars) {
    for (const BarPart& part : bar.parts) {
      if (std::find(names.begin(), names.end(), part.name) == names.end()) names.push_back(part.name);
    }
  }
  return names;
}

const char* ColorOf(const std::string& name, const std::vector<std::string>& names) {
  return ChartColor(name, static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin()));
}

// Space left of the bars that the longest name of a bar needs.
double LeftOf(const std::vector<Bar>& bars) {
  double left = kLeast;
  for (const Bar& bar : bars) left = std::max(left, kLetter * static_cast<double>(bar.name.size()) + 8);
  return left;
}

// Returns three digits of a number below 1,000, and the whole number above.
std::string TotalText(double total) {
  return total < 1000 ? fmt::format("{:.3g}", total) : fmt::format("{:.0f}", total);
}

// Says where a bar is drawn, and how many units of the viewBox a value of 1 is wide.
struct BarPlace {
  double left = 0;
  double y = 0;
  double pixels_per_unit = 0;
};

std::string DrawBar(const Bar& bar, const BarPlace& place, const std::vector<std::string>& names) {
  std::string svg = fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>", place.left - 6,
                                place.y + 14, EscapeHtml(bar.name));
  double x = place.left;
  for (const BarPart& part : bar.parts) {
    const double width = part.value * place.pixels_per_unit;
    svg += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\"/>", x,
                       place.y, width, kBarHeight, ColorOf(part.name, names));
    x += width;
  }
  return svg;
}

}  // namespace

std::string StackedBars(const std::string& caption, const std::vector<Bar>& bars, const std::string& unit) {
  double largest = 0;
  for (const Bar& bar : bars) largest = std::max(largest, Total(bar));
  if (largest <= 0) return {};
  const double left = LeftOf(bars);
  const double pixels_per_unit = (kWidth - left - kRight) / largest;
  const std::vector<std::string> names = PartNames(bars);
  const ChartLegend legend = LegendOf(names, kWidth);
  std::string svg = legend.svg;
  double y = legend.height;
  for (const Bar& bar : bars) {
    const double total = Total(bar);
    svg += DrawBar(bar, {left, y, pixels_per_unit}, names);
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\">{} {}</text>", left + total * pixels_per_unit + 5, y + 14,
                       TotalText(total), EscapeHtml(unit));
    y += kPitch;
  }
  return ChartFigure(caption, kWidth, y, svg);
}

}  // namespace dynamiccl
