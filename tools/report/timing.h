// SPDX-License-Identifier: Apache-2.0
// Repeats of one measurement as the numbers that reports show.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

namespace dynamiccl {

// Median and quartiles, linear between neighbours. The quartiles are the noise that every table shows. Unit:
// that of the samples. All zero without samples.
struct Timing {
  double median = 0;
  double low = 0;   // lower quartile
  double high = 0;  // upper quartile
  int repeats = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Timing, median, low, high, repeats)

Timing Summarize(std::vector<double> samples);

// True when the quartile ranges of both do not touch: less is called noise in the reports. Fewer than
// kFewestRepeats samples have no quartiles to speak of: always noise.
inline constexpr int kFewestRepeats = 3;
bool ClearlyDiffer(const Timing& a, const Timing& b);

}  // namespace dynamiccl
