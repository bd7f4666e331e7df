// SPDX-License-Identifier: Apache-2.0
#include "tools/report/timing.h"

#include <algorithm>
#include <cmath>

namespace dynamiccl {
namespace {

double Quantile(const std::vector<double>& sorted, double share) {
  const double position = share * static_cast<double>(sorted.size() - 1);
  const size_t below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], position - static_cast<double>(below));
}

}  // namespace

Timing Summarize(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  return {.median = Quantile(samples, 0.5),
          .low = Quantile(samples, 0.25),
          .high = Quantile(samples, 0.75),
          .repeats = static_cast<int>(samples.size())};
}

bool ClearlyDiffer(const Timing& a, const Timing& b) {
  if (a.repeats < kFewestRepeats || b.repeats < kFewestRepeats) return false;
  return a.high < b.low || b.high < a.low;
}

}  // namespace dynamiccl
