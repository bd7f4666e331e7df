// SPDX-License-Identifier: Apache-2.0
// Ways to notice from the times of calls that a fabric changed: the shipped detector, and simple ones. They
// share one interface, so that they can be judged alike.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/collective/role.h"
#include "studies/agents/timing/timing_run.h"

namespace dynamiccl::agents {

// Watches the calls of one job. The study feeds it every call in order on one thread.
class ChangeDetector {
 public:
  virtual ~ChangeDetector() = default;
  // Takes the next call. At the call at which a change is noticed, it returns the regime that the calls
  // suggest. At all others it returns nothing. After a change the detector learns anew what is usual.
  virtual std::optional<Regime> Take(const TimedCall& call) = 0;
};

// Makes detectors of one kind. A higher threshold means fewer alarms.
class DetectorKind {
 public:
  virtual ~DetectorKind() = default;
  virtual std::string name() const = 0;
  // A detector for one job.
  virtual std::unique_ptr<ChangeDetector> Make(double threshold) const = 0;
  // The threshold from which a search for one starts. It is positive.
  virtual double usual_threshold() const = 0;
  // True if it names the regime. Others only report whether transfers or arrivals changed.
  virtual bool tells_regimes() const { return false; }
  // True if the threshold measures evidence, so that one can demand twice as much of it.
  virtual bool has_curve() const { return true; }
};

// The shipped detector, fed as the guard feeds it. The threshold is its strictness, 1 as shipped.
std::unique_ptr<DetectorKind> ShippedKind();
// The shipped detector, with a verification that ends after a quarter of its span if the effect is
// `noise_times` deviations of the variation of blocks of calls (src/decision/guard/timing_detector.h).
std::unique_ptr<DetectorKind> EarlyKind(double noise_times);
// Two-sided CUSUM (Page, Biometrika 41, 1954) over the residuals of all keys, with a drift of 0.5 spreads,
// neither winsorised nor verified.
std::unique_ptr<DetectorKind> CusumKind();
// The same, winsorised at three spreads: the shipped detector without its verification.
std::unique_ptr<DetectorKind> WinsorisedCusumKind();
// The shipped detector and the winsorised CUSUM together: the first alarm of either counts, and then both
// learn anew. The threshold multiplies the two detectors' own thresholds, `strictness` and `cusum`.
std::unique_ptr<DetectorKind> TogetherKind(double strictness, double cusum);
// Two-sided Page-Hinkley test: sums of the winsorised residuals off their running mean, with a drift of 0.25
// spreads.
std::unique_ptr<DetectorKind> PageHinkleyKind();
// Bayesian online change point detection (Adams and MacKay, arXiv 0710.3742): normal noise of unknown mean
// and variance, one change expected in 2,000 calls, runs of up to 200 calls. It is winsorised at six spreads,
// because otherwise it sees only tails. The threshold is the log odds of a run of 4 to 32 calls.
std::unique_ptr<DetectorKind> BayesianKind();

}  // namespace dynamiccl::agents
