// SPDX-License-Identifier: Apache-2.0
// Two charts as inline SVG: times over sizes on logarithmic axes, and stacked bars. Colours come from the
// page's styles.
#pragma once

#include <string>
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

}  // namespace dynamiccl
