// SPDX-License-Identifier: Apache-2.0
// Computes quartiles by linear interpolation, the default of R and NumPy (Hyndman and Fan 1996, type 7).
#include "tools/report/timing.h"

#include "src/base/statistics.h"

namespace dynamiccl {

Timing Summarize(std::vector<double> samples) {
  return {.median = MedianInPlace(samples),
          .low = QuantileInPlace(samples, 0.25),
          .high = QuantileInPlace(samples, 0.75),
          .repeats = static_cast<int>(samples.size())};
}

bool ClearlyDiffer(const Timing& a, const Timing& b) {
  if (a.repeats < kFewestRepeats || b.repeats < kFewestRepeats) return false;
  return a.high < b.low || b.high < a.low;
}

}  // namespace dynamiccl
