// SPDX-License-Identifier: Apache-2.0
// What is kept of many times.
#include <algorithm>
#include <cmath>

#include "tools/bench/collective_bench.h"

namespace dynamiccl {

double Percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(values.size())));
  const size_t index = std::clamp<size_t>(rank, 1, values.size()) - 1;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(index), values.end());
  return values[index];
}

double SpreadPercent(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const double median = Percentile(values, 0.5);
  return median > 0 ? 100 * (*most - *least) / median : 0;
}

}  // namespace dynamiccl
