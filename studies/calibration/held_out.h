// SPDX-License-Identifier: Apache-2.0
// How far a fitted system is off where it was not fitted. One rank count or one size after the other is left
// out. Random rows are not left out, because their neighbours would reveal them. Baselines that need no model
// are computed too.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/simulator/fit_system.h"
#include "tools/calibration/timed_systems.h"

namespace dynamiccl {

// Summary of |prediction / measured - 1| over cells.
struct ErrorSummary {
  size_t cells = 0;
  double median = 0;
  double mean = 0;
};
ErrorSummary SummarizeErrors(std::vector<double> errors);

// The group that was left out of the fit: a rank count, by its place among the measured ones, or a size
// between others.
enum class LeftOut { kBetween, kLargest, kSmallest, kSize };
const char* Name(LeftOut left_out);

// Relative errors over the left-out cells.
struct HeldOutErrors {
  // Errors of the system fitted without these cells.
  std::vector<double> system;
  // Errors of the same fit's formulas without residuals.
  std::vector<double> formulas;
  // Errors of a straight line in logarithms through the two neighbouring rank counts at equal size. At the
  // ends it is the line through the two nearest rank counts.
  std::vector<double> by_ranks;
  // Errors of the same line between the neighbouring sizes at equal rank count.
  std::vector<double> by_size;
  // Errors when one half of the repeats predicts the other half: the noise.
  std::vector<double> repeats;
};

// Counts the left-out cells that lie inside the intervals of a fit that did not see them.
struct Coverage {
  size_t judged = 0;  // cells for which the fit states an interval
  size_t inside = 0;
  std::vector<double> widths;  // widths of the intervals, as natural logarithms
  double Share() const { return judged == 0 ? 0 : static_cast<double>(inside) / static_cast<double>(judged); }
};

// How well the predicted order of configs agrees with the measured one, over calls for which several configs
// were timed. The system was fitted without their rank count, or without their size where there are too few
// rank counts.
struct ConfigOrder {
  size_t calls = 0;
  // Number of pairs of configs whose measured times differ.
  size_t pairs = 0;
  // Number of these pairs that are in the predicted order.
  size_t agreeing = 0;
  // Regret of the config with the best prediction: its measured time over the best measured time, minus 1.
  std::vector<double> picked;
  // Regret of the library's own choice, if it was timed. It is at least 0.
  std::vector<double> library;
  // Kendall's tau: 1 for the same order, -1 for the reverse; 0 without pairs.
  double Tau() const;
};

// All errors of one system.
struct HeldOutResult {
  std::string system;
  std::vector<int> rank_counts;
  // True if some measured communicators used a part of each node only.
  bool has_partial_nodes = false;
  std::map<LeftOut, HeldOutErrors> errors;
  // An unseen rank count has an interval only if the fit has three rank counts besides the one left out.
  std::map<LeftOut, Coverage> coverage;
  ConfigOrder order;
};

// Adds the cells and calls of one result to another's.
void Pool(HeldOutResult& into, const HeldOutResult& one);

// Judging intervals takes one more fit for each pair of rank counts.
enum class Intervals { kJudged, kNotJudged };
// Leaves out every rank count where there are at least three, and every inner size where there are at least
// three sizes. Returns kUnsupported if there are fewer of both.
Result<HeldOutResult> EvaluateHeldOut(const TimedSystem& system, const FitOptions& options,
                                      Intervals intervals = Intervals::kJudged);

}  // namespace dynamiccl
