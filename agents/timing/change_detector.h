// SPDX-License-Identifier: Apache-2.0
// Ways to notice from the times of calls that a fabric changed, behind one interface, so that they can be
// judged alike: what is shipped, and what is simple beside it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agents/timing/timing_run.h"
#include "src/collective/role.h"

namespace dynamiccl::agents {

class ChangeDetector {
 public:
  virtual ~ChangeDetector() = default;
  // The regime that the calls so far tell of, at the call at which a change is noticed; none at all others.
  // After a change the detector learns anew what is usual.
  virtual std::optional<Regime> Take(const TimedCall& call) = 0;
};

// What makes detectors of one kind; a greater threshold makes fewer alarms. One job each.
class DetectorKind {
 public:
  virtual ~DetectorKind() = default;
  virtual std::string name() const = 0;
  virtual std::unique_ptr<ChangeDetector> Make(double threshold) const = 0;
  // Where a search for a threshold begins.
  virtual double usual_threshold() const = 0;
  // Whether it names the regime; the others only say whether transfers or arrivals changed.
  virtual bool tells_regimes() const { return false; }
  // Whether its threshold is evidence, of which twice as much may be asked for.
  virtual bool has_curve() const { return true; }
};

// The shipped detector, as the guard feeds it; the threshold is its strictness, 1 as shipped.
std::unique_ptr<DetectorKind> ShippedKind();
// The same, which ends a verification after a quarter of its span where the effect is `noise_times`
// deviations of what blocks of calls vary by themselves (src/decision/guard/timing_detector.h).
std::unique_ptr<DetectorKind> EarlyKind(double noise_times);
// Sums of the residuals of all keys beyond 0.5 spreads, two-sided, not winsorised, without verification
// (Page, Biometrika 41, 1954).
std::unique_ptr<DetectorKind> CusumKind();
// The same, winsorised at three spreads: what is shipped, less verification.
std::unique_ptr<DetectorKind> WinsorisedCusumKind();
// The shipped detector and the winsorised CUSUM, what either says first; then both learn anew. The threshold
// multiplies both of theirs: `strictness` and `cusum`.
std::unique_ptr<DetectorKind> TogetherKind(double strictness, double cusum);
// Sums of the residuals, winsorised as these, off their running mean beyond 0.25 spreads, two-sided.
std::unique_ptr<DetectorKind> PageHinkleyKind();
// Bayesian online change point detection (Adams and MacKay, arXiv 0710.3742): normal noise of unknown mean
// and variance, a change in 2,000 calls expected, runs of up to 200 calls. Winsorised at six spreads, without
// which tails are all that it sees. Threshold: log odds of a run of 4 to 32 calls.
std::unique_ptr<DetectorKind> BayesianKind();

}  // namespace dynamiccl::agents
