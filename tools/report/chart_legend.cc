// SPDX-License-Identifier: Apache-2.0
// Holds what all charts have in common: the frame, the colours of names, and a legend in rows that fit the
// chart's width.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "tools/report/html.h"
#include "tools/report/svg_chart.h"

namespace dynamiccl {
namespace {

// A colour of the palette, and whether text on it must be white to be legible.
struct Color {
  const char* code;
  bool dark;
};
// Blue, vermilion, green, purple, orange, sky blue, yellow and violet (svg_chart.h names the source). The
// first four have a contrast of at least 3 : 1 to a white page. The others have this contrast only to a dark
// page, so they come last.
constexpr std::array<Color, 8> kColors{{{"#0072b2", true},
                                        {"#d55e00", true},
                                        {"#009e73", true},
                                        {"#cc79a7", false},
                                        {"#e69f00", false},
                                        {"#56b4e9", false},
                                        {"#f0e442", false},
                                        {"#8c6bb1", true}}};

// Height of a row of the legend, in the units of the chart's viewBox. Text is 11 units high.
constexpr double kRowHeight = 18;
// Width of a letter in units of the viewBox. It is wide enough that names do not overlap in any system font.
constexpr double kLetter = 6.8;
// Width of the coloured square and the space after it, in units of the viewBox.
constexpr double kBox = 15;
// Distance between two names, in units of the viewBox.
constexpr double kGap = 12;

// The order in which collectives take the colours of the palette, so that a collective has one colour in all
// charts. There are more collectives than colours: Scatter has the colour of Broadcast, Gather that of
// Reduce, and SendRecv that of AlltoAll.
constexpr std::array<std::string_view, 14> kCollectivesInOrder{
    "AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce",  "AlltoAll", "Send", "Recv", "",
    "",          "",          "Scatter",       "Gather",    "SendRecv"};

// Returns the index of a name's colour in the palette. For a collective this is its index in
// kCollectivesInOrder, for any other name its place in the chart.
size_t NumberOf(const std::string& name, size_t place) {
  const auto found = std::find(kCollectivesInOrder.begin(), kCollectivesInOrder.end(), name);
  const bool collective = found != kCollectivesInOrder.end();
  return (collective ? static_cast<size_t>(found - kCollectivesInOrder.begin()) : place) % kColors.size();
}

}  // namespace

std::string ChartFigure(const std::string& caption, double width, double height, const std::string& svg) {
  return fmt::format(
      "<figure><figcaption>{0}</figcaption><svg viewBox=\"0 0 {1:.0f} {2:.0f}\" role=\"img\" "
      "aria-label=\"{0}\">{3}</svg></figure>\n",
      EscapeHtml(caption), width, height, svg);
}

const char* ChartColor(const std::string& name, size_t place) {
  return kColors[NumberOf(name, place)].code;
}

bool ChartColorIsDark(const std::string& name, size_t place) {
  return kColors[NumberOf(name, place)].dark;
}

ChartLegend LegendOf(const std::vector<std::string>& names, double width) {
  ChartLegend legend;
  double x = 0;
  double y = 4;
  for (size_t i = 0; i < names.size(); ++i) {
    const double wide = kBox + kLetter * static_cast<double>(names[i].size());
    if (x > 0 && x + wide > width) {
      x = 0;
      y += kRowHeight;
    }
    legend.svg += fmt::format(
        "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"11\" height=\"11\" fill=\"{}\"/><text x=\"{:.0f}\" "
        "y=\"{:.0f}\">{}</text>",
        x, y, ChartColor(names[i], i), x + kBox, y + 10, EscapeHtml(names[i]));
    x += wide + kGap;
  }
  legend.height = y + kRowHeight + 4;
  return legend;
}

}  // namespace dynamiccl
