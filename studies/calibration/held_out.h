// SPDX-License-Identifier: Apache-2.0
// How far a fitted system is off where it was not fitted: one rank count, or one size, after the other is
// left out, never random rows, beside what needs no model at all.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/simulator/fit_system.h"
#include "tools/calibration/timed_systems.h"

namespace dynamiccl {

// |prediction / measured - 1| over cells.
struct ErrorSummary {
  size_t cells = 0;
  double median = 0;
  double mean = 0;
};
ErrorSummary SummarizeErrors(std::vector<double> errors);

// What was left out of the fit: a rank count, by its place among those measured, or a size between others.
enum class LeftOut { kBetween, kLargest, kSmallest, kSize };
const char* Name(LeftOut left_out);

struct HeldOutErrors {
  std::vector<double> system;    // fitted without them
  std::vector<double> formulas;  // the same fit's formulas without residuals
  std::vector<double> by_ranks;  // straight line in logarithms between the neighbouring rank counts, of equal
                                 // size; at the ends the nearest one's time
  std::vector<double> by_size;   // the same between the neighbouring sizes, of the rank count itself
  std::vector<double> repeats;   // one half of the repeats taken for the other's prediction
};

// Over cells where several configs of one call were timed; the system was fitted without their rank count, or
// without their size where rank counts are too few.
struct ConfigOrder {
  size_t calls = 0;
  size_t pairs = 0;             // of configs whose times differ
  size_t agreeing = 0;          // in the predicted order
  std::vector<double> picked;   // measured time of the config predicted best, over the best's, less 1
  std::vector<double> library;  // the same of the library's own choice, where it was timed; at least 0
  double Tau() const;           // Kendall's
};

struct HeldOutResult {
  std::string system;
  std::vector<int> rank_counts;
  std::map<LeftOut, HeldOutErrors> errors;
  ConfigOrder order;
};

// Adds the cells and calls of one result to another's.
void Pool(HeldOutResult& into, const HeldOutResult& one);

// Rank counts are left out where there are three, sizes where there are three. kUnsupported with fewer of
// both.
Result<HeldOutResult> EvaluateHeldOut(const TimedSystem& system, const FitOptions& options);

}  // namespace dynamiccl
