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

// Returns how far a rank count is from the measured ones: the standard deviation of a residual at `n_ranks`
// if its values at the measured rank counts are known. So the result is 0 for a measured rank count.
// Residuals are taken to fade towards 0 as in residual_surface.h: `reach` is the share that is left after one
// doubling of the rank count. The unit is the residual's own standard deviation; for a reach of 1 it is the
// standard deviation of the change over one doubling. `measured` must not be empty.
double DistanceFrom(const std::set<int>& measured, int n_ranks, double reach);

// Returns the rank counts at which the collective has residuals.
std::set<int> MeasuredRanks(const System& system, Collective collective);

// Returns the collective's entry in `system.intervals`. Adds an entry without widths if there is none.
StatedInterval& IntervalOf(System& system, Collective collective);

// Returns the width (StatedInterval) of the interval in which nine of ten measured times of this call should
// lie. Returns nothing if the system states none, or if the ranks do not fill their nodes: no such times were
// used to find the widths. The width for a size that was not measured is at least the width at measured rank
// counts.
std::optional<double> LogWidth(const System& system, Collective collective, uint64_t bytes, int n_ranks,
                               int n_nodes);

// Returns the width w such that another logarithm of (measured / predicted), drawn like these, lies between
// -w and w with a chance of nine in ten. Of the n absolute values w is the one of rank 0.9 (n + 1), rounded
// up (split conformal prediction: Lei and others, "Distribution-Free Predictive Inference for Regression",
// 2018). Returns nothing if there are fewer than nine. The width counts in both directions, because the error
// at an unseen rank count may have the other sign than the errors in `log_ratios`.
std::optional<double> WidthOfNineInTen(std::span<const double> log_ratios);

// Sets StatedInterval::seen of `system` for each collective whose inner sizes were measured. Every inner size
// of every rank count is predicted without its own residual.
void StateSeenIntervals(System& system, std::span<const TimedCell> cells);

}  // namespace dynamiccl
