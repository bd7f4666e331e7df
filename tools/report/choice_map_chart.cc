// SPDX-License-Identifier: Apache-2.0
// Draws a map of the configs that were chosen: a row for each number of ranks, a column for each size, a
// colour for each config.
#include <fmt/format.h>

#include <algorithm>

#include "tools/report/html.h"
#include "tools/report/svg_chart.h"

namespace dynamiccl {
namespace {

// Size of the chart in units of its viewBox; the page scales it to the width of its column.
constexpr double kWidth = 460;
// Space left of the map, in units of the viewBox, for a row's name as long as "1024 x 128 n.".
constexpr double kLeft = 84;
constexpr double kRowHeight = 20;
constexpr double kAxisHeight = 20;

// All choices that get a colour, sorted, so that the same choices get the same colours in every map.
std::vector<std::string> ChoicesOf(const std::vector<ChartMapRow>& rows, const std::string& plain) {
  std::vector<std::string> choices;
  for (const ChartMapRow& row : rows) {
    for (const ChartMapCell& cell : row.cells) {
      const bool listed = std::find(choices.begin(), choices.end(), cell.choice) != choices.end();
      if (!cell.choice.empty() && cell.choice != plain && !listed) choices.push_back(cell.choice);
    }
  }
  std::sort(choices.begin(), choices.end());
  return choices;
}

// Draws one cell of the map: a rectangle with its title and, if the cell has one, its mark.
std::string DrawCell(const ChartMapCell& cell, double x, double y, double wide,
                     const std::vector<std::string>& choices) {
  if (cell.choice.empty()) return {};
  const auto found = std::find(choices.begin(), choices.end(), cell.choice);
  const auto n = static_cast<size_t>(found - choices.begin());
  const bool plain = found == choices.end();
  std::string svg = fmt::format(
      "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" {}><title>{}</title></rect>", x, y,
      wide - 1, kRowHeight - 1,
      plain ? "class=\"plain\"" : fmt::format("fill=\"{}\"", ChartColor(cell.choice, n)),
      EscapeHtml(cell.title));
  if (cell.mark.empty()) return svg;
  return svg + fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" class=\"{}\">{}</text>",
                           x + wide / 2, y + 14,
                           plain                              ? ""
                           : ChartColorIsDark(cell.choice, n) ? "on-dark"
                                                              : "on-light",
                           EscapeHtml(cell.mark));
}

// Draws the labels below the columns: at most eight, so that they do not touch on a phone.
std::string ColumnLabels(const std::vector<std::string>& columns, double y, double wide) {
  std::string svg;
  const size_t every = (columns.size() + 7) / 8;
  for (size_t i = 0; i < columns.size(); i += every) {
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>",
                       kLeft + wide * (static_cast<double>(i) + 0.5), y + 13, EscapeHtml(columns[i]));
  }
  return svg;
}

}  // namespace

std::string ChoiceMapChart(const std::string& caption, const std::vector<std::string>& columns,
                           const std::vector<ChartMapRow>& rows, const std::string& plain) {
  if (columns.empty() || rows.empty()) return {};
  const std::vector<std::string> choices = ChoicesOf(rows, plain);
  const ChartLegend legend = LegendOf(choices, kWidth);
  const double wide = std::min((kWidth - kLeft) / static_cast<double>(columns.size()), 44.0);
  std::string svg = choices.empty() ? "" : legend.svg;
  double y = choices.empty() ? 2 : legend.height;
  for (const ChartMapRow& row : rows) {
    svg += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>", kLeft - 5, y + 14,
                       EscapeHtml(row.name));
    for (size_t i = 0; i < row.cells.size() && i < columns.size(); ++i)
      svg += DrawCell(row.cells[i], kLeft + wide * static_cast<double>(i), y, wide, choices);
    y += kRowHeight;
  }
  svg += ColumnLabels(columns, y, wide);
  return fmt::format(
      "<figure><figcaption>{0}</figcaption><svg viewBox=\"0 0 {1} {2:.0f}\" role=\"img\" "
      "aria-label=\"{0}\">{3}</svg></figure>\n",
      EscapeHtml(caption), kWidth, y + kAxisHeight, svg);
}

}  // namespace dynamiccl
