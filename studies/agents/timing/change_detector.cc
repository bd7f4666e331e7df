// SPDX-License-Identifier: Apache-2.0
// Each simple detector is a statistic of one quantity. BothQuantities runs it on transfers and on arrivals.
// These are the statistics, where r is the residual in spreads:
//
//   CUSUM         up = max(0, up + r - 0.5), likewise down; alarm if either exceeds the threshold
//   Page-Hinkley  up = sum of (r - running mean - 0.25); alarm if up - min(up) exceeds it
//   BOCPD         P(run length) by Bayes' rule after each call; alarm on the log odds of a short run
#include "studies/agents/timing/change_detector.h"

#include <algorithm>
#include <cmath>

#include "src/decision/guard/guard.h"
#include "src/decision/guard/step_period.h"
#include "src/decision/guard/timing_detector.h"
#include "studies/agents/timing/call_residuals.h"

namespace dynamiccl::agents {
namespace {

// The detector of src/decision/guard.
class Shipped : public ChangeDetector {
 public:
  explicit Shipped(double strictness, double early_noise_times = 0)
      : detector_({.strictness = strictness, .early_noise_times = early_noise_times}) {}

  std::optional<Regime> Take(const TimedCall& call) override {
    // The span of a verification, as in src/decision/guard/guard.cc.
    steps_.Take(static_cast<uint32_t>(call.key ^ (call.key >> 32)), call.at_ns);
    detector_.SetLeastSpan(std::min(kVerifiedNs, kVerifiedSteps * steps_.step_ns()));
    const auto change = detector_.Take(
        {call.key, call.at_ns, std::log(call.transfer_ns), std::log1p(call.skew_ns / call.transfer_ns)});
    if (!change) return std::nullopt;
    return change->regime;
  }

 private:
  TimingDetector detector_;
  StepPeriod steps_;
};

// Two detectors of one quantity each. If transfers have changed, the fabric is reported. If only arrivals
// have changed, a straggler is reported.
template <typename OneQuantity>
class BothQuantities : public ChangeDetector {
 public:
  explicit BothQuantities(double threshold) : threshold_(threshold) {}

  std::optional<Regime> Take(const TimedCall& call) override {
    const auto residual = residuals_.Take(call);
    if (!residual) return std::nullopt;
    const double transfer = transfer_.Take(residual->transfer / residual->transfer_unit);
    const double skew = skew_.Take(residual->skew / residual->skew_unit);
    if (std::max(transfer, skew) < threshold_) return std::nullopt;
    residuals_.Forget();
    transfer_ = skew_ = OneQuantity();
    return transfer >= threshold_ ? Regime::kDegradedLink : Regime::kStraggler;
  }

 private:
  double threshold_;
  CallResiduals residuals_;
  OneQuantity transfer_;
  OneQuantity skew_;
};

// Clamps a residual, in spreads, to the range that the shipped detector uses.
double Winsorised(double spreads) {
  return std::clamp(spreads, -TimeReference::kWinsorise, TimeReference::kWinsorise);
}

// Page's cumulative sums in both directions.
template <bool winsorised>
class Cusum {
 public:
  double Take(double residual) {
    const double spreads = winsorised ? Winsorised(residual) : residual;
    up_ = std::max(0.0, up_ + spreads - kDrift);
    down_ = std::max(0.0, down_ - spreads - kDrift);
    return std::max(up_, down_);
  }

 private:
  // Spreads that are subtracted at each call; a change of twice this size is detected best.
  static constexpr double kDrift = 0.5;
  double up_ = 0;
  double down_ = 0;
};

// The Page-Hinkley test in both directions.
class PageHinkley {
 public:
  double Take(double residual) {
    const double spreads = Winsorised(residual);
    mean_ += (spreads - mean_) / static_cast<double>(++n_);
    up_ += spreads - mean_ - kDrift;
    down_ += mean_ - spreads - kDrift;
    least_up_ = std::min(least_up_, up_);
    least_down_ = std::min(least_down_, down_);
    return std::max(up_ - least_up_, down_ - least_down_);
  }

 private:
  // Spreads that are subtracted at each call.
  static constexpr double kDrift = 0.25;
  int64_t n_ = 0;
  double mean_ = 0;
  double up_ = 0, least_up_ = 0;
  double down_ = 0, least_down_ = 0;
};

// Keeps the probability of each run length since the last change. The predictive distribution of a run is
// Student's t: a normal distribution whose mean and precision have a normal-gamma prior.
class Bayesian {
 public:
  double Take(double spreads) {
    const double x = std::clamp(spreads, -6.0, 6.0);
    std::vector<double> next(std::min(runs_.size() + 1, kMax));
    double begins = 0, total = 0;
    for (size_t r = 0; r < runs_.size(); ++r) {
      if (runs_[r] < kNegligible) continue;
      const double joint = runs_[r] * Predictive(r, x);
      begins += joint * kHazard;
      // The longest run length that is distinguished also stands for all longer ones.
      next[std::min(r + 1, next.size() - 1)] += joint * (1 - kHazard);
    }
    next[0] = begins;
    for (const double p : next) total += p;
    for (double& p : next) p = total > 0 ? p / total : 1.0 / static_cast<double>(next.size());
    runs_ = std::move(next);
    last_.insert(last_.begin(), x);
    if (last_.size() > kMax) last_.pop_back();
    Resum();
    if (++taken_ < kMax) return 0;
    const double changed = Share(kLeastRun, kMaxRun);
    return std::log((changed + 1e-300) / (1 - changed + 1e-12)) + kOffset;
  }

 private:
  // The longest run that is distinguished from longer ones, in calls.
  static constexpr size_t kMax = 200;
  // Prior probability of a change at each call.
  static constexpr double kHazard = 1.0 / 2000;
  // The least and greatest length of a run, in calls, that counts as a recent change.
  static constexpr size_t kLeastRun = 4, kMaxRun = 32;
  // Probabilities below this value are not worth their arithmetic.
  static constexpr double kNegligible = 1e-7;
  // Added to the log odds, because thresholds are searched above zero.
  static constexpr double kOffset = 50;

  void Resum() {
    sums_.resize(last_.size() + 1);
    squares_.resize(last_.size() + 1);
    for (size_t i = 0; i < last_.size(); ++i) {
      sums_[i + 1] = sums_[i] + last_[i];
      squares_[i + 1] = squares_[i] + last_[i] * last_[i];
    }
  }
  double Predictive(size_t run, double x) const {
    // The prior has mean 0 with the weight of a tenth of a call, and variance 1 with the weight of two calls.
    const size_t of = std::min(run, last_.size());
    const double n = static_cast<double>(of), sum = of == 0 ? 0 : sums_[of],
                 square = of == 0 ? 0 : squares_[of];
    const double weight = 0.1 + n, mean = sum / weight, shape = 1 + n / 2;
    const double rate = std::max(0.02, 1 + 0.5 * (square - weight * mean * mean));
    const double variance = rate * (weight + 1) / (shape * weight);
    const double freedom = 2 * shape;
    const double off = (x - mean) * (x - mean) / variance;
    return std::exp(Normaliser(of) - 0.5 * std::log(variance) -
                    0.5 * (freedom + 1) * std::log1p(off / freedom));
  }
  static double Normaliser(size_t n) {
    static const std::vector<double> kTable = [] {
      std::vector<double> table(kMax + 1);
      for (size_t i = 0; i < table.size(); ++i) {
        const double freedom = 2 + static_cast<double>(i);
        table[i] = std::lgamma((freedom + 1) / 2) - std::lgamma(freedom / 2) - 0.5 * std::log(freedom);
      }
      return table;
    }();
    return kTable[n];
  }
  double Share(size_t from, size_t to) const {
    double share = 0;
    for (size_t r = from; r <= to && r < runs_.size(); ++r) share += runs_[r];
    return share;
  }

  // Probability of each run length; the index is the length in calls.
  std::vector<double> runs_ = {1};
  // The latest residuals, newest first.
  std::vector<double> last_;
  std::vector<double> sums_, squares_;
  size_t taken_ = 0;
};

// The shipped detector and the winsorised CUSUM side by side.
class Together : public ChangeDetector {
 public:
  Together(double strictness, double cusum)
      : strictness_(strictness), cusum_threshold_(cusum), shipped_(strictness), cusum_(cusum) {}

  std::optional<Regime> Take(const TimedCall& call) override {
    const auto verified = shipped_.Take(call);
    const auto summed = cusum_.Take(call);
    // One change is reported once: the other detector starts anew.
    if (summed && !verified) shipped_ = Shipped(strictness_);
    if (verified && !summed) cusum_ = BothQuantities<Cusum<true>>(cusum_threshold_);
    return verified ? verified : summed;
  }

 private:
  double strictness_, cusum_threshold_;
  Shipped shipped_;
  BothQuantities<Cusum<true>> cusum_;
};

// A kind whose detectors need nothing but a threshold.
template <typename Detector>
class Kind : public DetectorKind {
 public:
  Kind(std::string name, double usual, bool tells, bool has_curve = true)
      : name_(std::move(name)), usual_(usual), tells_(tells), has_curve_(has_curve) {}
  std::string name() const override { return name_; }
  std::unique_ptr<ChangeDetector> Make(double threshold) const override {
    return std::make_unique<Detector>(threshold);
  }
  double usual_threshold() const override { return usual_; }
  bool tells_regimes() const override { return tells_; }
  bool has_curve() const override { return has_curve_; }

 private:
  std::string name_;
  double usual_;
  bool tells_;
  bool has_curve_;
};

// The kind of Together.
class KindOfTwo : public DetectorKind {
 public:
  KindOfTwo(double strictness, double cusum) : strictness_(strictness), cusum_(cusum) {}
  std::string name() const override { return "shipped or winsorised CUSUM"; }
  std::unique_ptr<ChangeDetector> Make(double threshold) const override {
    return std::make_unique<Together>(threshold * strictness_, threshold * cusum_);
  }
  double usual_threshold() const override { return 1; }
  bool tells_regimes() const override { return true; }

 private:
  double strictness_, cusum_;
};

// The kind of the shipped detector with an early end of its verification.
class KindThatEndsEarly : public DetectorKind {
 public:
  explicit KindThatEndsEarly(double noise_times) : noise_times_(noise_times) {}
  std::string name() const override { return "shipped, verified sooner"; }
  std::unique_ptr<ChangeDetector> Make(double threshold) const override {
    return std::make_unique<Shipped>(threshold, noise_times_);
  }
  double usual_threshold() const override { return 1; }
  bool tells_regimes() const override { return true; }

 private:
  double noise_times_;
};

}  // namespace

std::unique_ptr<DetectorKind> EarlyKind(double noise_times) {
  return std::make_unique<KindThatEndsEarly>(noise_times);
}
std::unique_ptr<DetectorKind> TogetherKind(double strictness, double cusum) {
  return std::make_unique<KindOfTwo>(strictness, cusum);
}
std::unique_ptr<DetectorKind> ShippedKind() {
  return std::make_unique<Kind<Shipped>>("shipped", 1.0, true);
}
std::unique_ptr<DetectorKind> CusumKind() {
  return std::make_unique<Kind<BothQuantities<Cusum<false>>>>("CUSUM, plain", 64, false);
}
std::unique_ptr<DetectorKind> WinsorisedCusumKind() {
  return std::make_unique<Kind<BothQuantities<Cusum<true>>>>("CUSUM, winsorised", 16, false);
}
std::unique_ptr<DetectorKind> PageHinkleyKind() {
  return std::make_unique<Kind<BothQuantities<PageHinkley>>>("Page-Hinkley", 25, false);
}
std::unique_ptr<DetectorKind> BayesianKind() {
  return std::make_unique<Kind<BothQuantities<Bayesian>>>("BOCPD", 52, false, false);
}

}  // namespace dynamiccl::agents
