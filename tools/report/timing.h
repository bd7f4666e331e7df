// SPDX-License-Identifier: Apache-2.0
// Summarises the repeats of one measurement as the numbers that reports show.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

namespace dynamiccl {

// Median and quartiles of samples, in the samples' unit, interpolated linearly between neighbours. Every
// table shows the distance between the quartiles as the noise. All fields are 0 without samples.
struct Timing {
  double median = 0;
  // Lower quartile.
  double low = 0;
  // Upper quartile.
  double high = 0;
  int repeats = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Timing, median, low, high, repeats)

// Computes median and quartiles. The order of the samples does not matter.
Timing Summarize(std::vector<double> samples);

// Least number of samples for meaningful quartiles.
inline constexpr int kFewestRepeats = 3;
// True if the ranges between the quartiles do not touch. False if one side has fewer than kFewestRepeats
// samples. If the result is false, reports call the difference noise.
bool ClearlyDiffer(const Timing& a, const Timing& b);

}  // namespace dynamiccl
