// SPDX-License-Identifier: Apache-2.0
// Computes how wide the interval of a prediction is, from what a system file states (StatedInterval). Widths
// are natural logarithms: the interval reaches from prediction / exp(width) to prediction * exp(width).
#pragma once

#include <optional>
#include <set>
#include <span>

#include "src/simulator/fit_system.h"
#include "src/simulator/system.h"

namespace dynamiccl {

// Returns how far a rank count is from the measured ones, as the standard deviation of a residual there. The
// residual is taken to wander back to 0 over the doublings of the rank count, as in the weights of
// residual_surface.h: `reach` is the share that is left after one doubling. The result is 0 for a measured
// rank count. The unit is the residual's own standard deviation; for a reach of 1 it is that of the change
// over one doubling. `measured` must not be empty.
double DistanceFrom(const std::set<int>& measured, int n_ranks, double reach);

// Returns the rank counts at which the collective has residuals.
std::set<int> MeasuredRanks(const System& system, Collective collective);

// Returns the collective's intervals in `system`; adds an entry without widths if it has none.
StatedInterval& IntervalOf(System& system, Collective collective);

// Returns the width of the interval that holds nine of ten times of this call; nothing if the file does not
// state it, or if the ranks do not fill their nodes, because such times were not judged. At a rank count that
// was not measured, a size between the measured ones is no narrower than at a measured rank count.
std::optional<double> LogWidth(const System& system, Collective collective, uint64_t bytes, int n_ranks,
                               int n_nodes);

// Returns the width that nine of ten of these logarithms of (measured / predicted) keep, and that the next
// one keeps with this chance if it is like them: of n absolute values the one of rank 0.9 (n + 1), rounded up
// (split conformal prediction: Lei and others, "Distribution-Free Predictive Inference for Regression",
// 2018). Returns nothing if there are fewer than nine. The width counts in both directions, because a rank
// count that was not seen may be off in the other direction than those that show the width.
std::optional<double> WidthOfNineInTen(std::span<const double> log_ratios);

// Sets StatedInterval::seen of `system` for each collective whose inner sizes were measured. Every inner size
// of every rank count is predicted without its own residual.
void StateSeenIntervals(System& system, std::span<const TimedCell> cells);

}  // namespace dynamiccl
