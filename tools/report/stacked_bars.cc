// SPDX-License-Identifier: Apache-2.0
// Horizontal stacked bars.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tools/report/html.h"
#include "tools/report/svg_chart.h"

namespace dynamiccl {
namespace {

constexpr double kWidth = 460;
constexpr double kLeft = 64;   // room for "stage 3"
constexpr double kRight = 92;  // room for the total
constexpr double kBarHeight = 20;
constexpr double kPitch = 28;
constexpr double kTop = 26;  // room for the legend

// Told apart by people with colour blindness too (Okabe and Ito, "Color universal design", 2008).
constexpr std::array kColors = {"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"};

double Total(const Bar& bar) {
  double total = 0;
  for (const BarPart& part : bar.parts) total += part.value;
  return total;
}

// In the order of first appearance: a name keeps its colour in every bar.
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
  const auto position = std::find(names.begin(), names.end(), name) - names.begin();
  return kColors[static_cast<size_t>(position) % kColors.size()];
}

std::string DrawBar(const Bar& bar, double y, double pixels_per_unit, const std::vector<std::string>& names) {
  std::string svg = fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>", kLeft - 6, y + 14,
                                EscapeHtml(bar.name));
  double x = kLeft;
  for (const BarPart& part : bar.parts) {
    const double width = part.value * pixels_per_unit;
    svg += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\"/>", x, y,
                       width, kBarHeight, ColorOf(part.name, names));
    x += width;
  }
  return svg;
}

std::string Legend(const std::vector<std::string>& names) {
  std::string svg;
  double x = 0;
  for (const std::string& name : names) {
    svg += fmt::format(
        "<rect x=\"{:.0f}\" y=\"4\" width=\"11\" height=\"11\" fill=\"{}\"/><text x=\"{:.0f}\" "
        "y=\"14\">{}</text>",
        x, ColorOf(name, names), x + 15, EscapeHtml(name));
    x += 24 + 6.5 * static_cast<double>(name.size());  // 6.5: width of a letter at 11 px
  }
  return svg;
}

}  // namespace

std::string StackedBars(const std::string& caption, const std::vector<Bar>& bars, const std::string& unit) {
  double largest = 0;
  for (const Bar& bar : bars) largest = std::max(largest, Total(bar));
  if (largest <= 0) return {};
  const double pixels_per_unit = (kWidth - kLeft - kRight) / largest;
  const std::vector<std::string> names = PartNames(bars);
  std::string svg = Legend(names);
  double y = kTop;
  for (const Bar& bar : bars) {
    const double total = Total(bar);
    svg += DrawBar(bar, y, pixels_per_unit, names);
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\">{:.3g} {}</text>", kLeft + total * pixels_per_unit + 5,
                       y + 14, total, EscapeHtml(unit));
    y += kPitch;
  }
  return fmt::format(
      "<figure><figcaption>{0}</figcaption><svg viewBox=\"0 0 {1} {2}\" role=\"img\" "
      "aria-label=\"{0}\">{3}</svg>"
      "</figure>\n",
      EscapeHtml(caption), kWidth, y, svg);
}

}  // namespace dynamiccl
