// SPDX-License-Identifier: Apache-2.0
#include "src/decision/guard/timing_detector.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace dynamiccl {
namespace {

constexpr size_t kLearnt = 24;         // calls of a stream before it has a reference
constexpr double kLeastSpread = 0.02;  // finer clocks and quieter fabrics are not believed
constexpr double kLeastSkewSpread = 0.1;
constexpr double kWinsorise = 3;          // spreads
constexpr double kDrift = 0.5;            // spreads a call that count as no change
constexpr double kThreshold = 16;         // spreads: six calls of the winsorised most
constexpr size_t kVerified = 16;          // calls of a verification at least
constexpr size_t kVerifiedOfStream = 16;  // calls of a job's only key that are enough, however short the time
constexpr double kLeastEffect = 0.0953;   // log(1.1)
constexpr double kLeastSkewEffect = 0.182;  // log(1.2): skew varies more, and nothing is revoked for it
constexpr double kNoiseTimes = 5;           // an effect lies so many deviations of a block's mean off
constexpr double kFollowRate = 1.0 / 256;
constexpr double kBlockRate = 1.0 / 32;
constexpr double kFirstBlockDeviation = 0.03;  // assumed before blocks were seen

double MedianOf(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Standard deviation of normal noise from the median of absolute deviations.
double SpreadAround(double middle, const std::vector<double>& values) {
  std::vector<double> off(values.size());
  std::transform(values.begin(), values.end(), off.begin(), [=](double x) { return std::abs(x - middle); });
  return 1.4826 * MedianOf(std::move(off));
}

// What every quarter of the time shows: a burst that is over, or has just begun, is no change of the fabric.
double LastingEffect(const std::vector<double>& values) {
  double least = 0;
  for (size_t quarter = 0; quarter < 4; ++quarter) {
    const auto from = values.begin() + static_cast<std::ptrdiff_t>(values.size() * quarter / 4);
    const auto to = values.begin() + static_cast<std::ptrdiff_t>(values.size() * (quarter + 1) / 4);
    const double middle = MedianOf({from, to});
    if (quarter == 0 || std::abs(middle) < std::abs(least)) least = middle * least < 0 ? 0 : middle;
    if (middle * least <= 0) return 0;
  }
  return least;
}

double Winsorised(double spreads) {
  return std::clamp(spreads, -kWinsorise, kWinsorise);
}

}  // namespace

std::optional<double> TimingDetector::Reference::Residual(double value, double least_spread) {
  if (known()) return value - middle;
  learnt.push_back(value);
  if (learnt.size() < kLearnt) return std::nullopt;
  middle = MedianOf(learnt);
  spread = std::max(least_spread, SpreadAround(middle, learnt));
  learnt = {};
  return std::nullopt;
}

void TimingDetector::Reference::Follow(double residual, double least_spread) {
  middle += kFollowRate * std::clamp(residual, -spread, spread);
  // 1.25 mean absolute deviations are a standard deviation of normal noise.
  const double seen = 1.25 * std::min(std::abs(residual), kWinsorise * spread);
  spread = std::max(least_spread, spread + kFollowRate * (seen - spread));
}

void TimingDetector::Cusum::Take(double spreads) {
  up = std::max(0.0, up + spreads - kDrift);
  down = std::max(0.0, down - spreads - kDrift);
}

void TimingDetector::BlockNoise::Take(double residual) {
  sum += residual;
  if (++n < static_cast<int>(kVerified)) return;
  const double mean = sum / n;
  const double first = kFirstBlockDeviation * kFirstBlockDeviation;
  if (variance == 0) variance = first;
  variance += kBlockRate * (mean * mean - variance);
  sum = n = 0;
}

double TimingDetector::BlockNoise::Deviation() const {
  return variance == 0 ? kFirstBlockDeviation : std::sqrt(variance);
}

std::optional<RegimeChange> TimingDetector::Take(const TimedSample& sample) {
  Stream& stream = streams_[sample.stream];
  if (alarm_ == Alarm::kNone) {
    Watch(sample, stream);
    return std::nullopt;
  }
  const bool transfer = alarm_ == Alarm::kTransfer;
  Reference& reference = transfer ? stream.transfer : stream.skew;
  const double value = transfer ? sample.log_transfer : sample.log_skew;
  const double least = transfer ? kLeastSpread : kLeastSkewSpread;
  const auto residual = value < 0 ? std::nullopt : reference.Residual(value, least);
  if (!residual) return std::nullopt;
  if (verified_.empty()) first_verified_ns_ = sample.at_ns;
  last_verified_ns_ = sample.at_ns;
  most_of_stream_ = std::max(most_of_stream_, ++stream.verified);
  verified_.push_back(*residual);
  verified_units_.push_back(*residual / reference.spread);
  return Verify();
}

void TimingDetector::Watch(const TimedSample& sample, Stream& stream) {
  if (const auto residual = stream.transfer.Residual(sample.log_transfer, kLeastSpread)) {
    const double spreads = Winsorised(*residual / stream.transfer.spread);
    transfer_.Take(spreads);
    transfer_noise_.Take(spreads * stream.transfer.spread);
    stream.transfer.Follow(*residual, kLeastSpread);
  }
  if (sample.log_skew >= 0) {
    if (const auto residual = stream.skew.Residual(sample.log_skew, kLeastSkewSpread)) {
      const double spreads = Winsorised(*residual / stream.skew.spread);
      skew_.Take(spreads);
      skew_noise_.Take(spreads * stream.skew.spread);
      stream.skew.Follow(*residual, kLeastSkewSpread);
    }
  }
  // A slow fabric also delays arrivals: transfer times are looked at first.
  if (transfer_.above(kThreshold)) {
    alarm_ = Alarm::kTransfer;
  } else if (skew_.above(kThreshold)) {
    alarm_ = Alarm::kSkew;
  }
}

std::optional<RegimeChange> TimingDetector::Verify() {
  const bool long_enough = last_verified_ns_ - first_verified_ns_ >= least_span_ns_;
  // Where nearly all calls are of one key, its calls are what the promise counts.
  const bool often_enough =
      most_of_stream_ >= kVerifiedOfStream && 4 * most_of_stream_ >= 3 * verified_.size();
  if (verified_.size() < kVerified || !(long_enough || often_enough)) return std::nullopt;
  const bool transfer = alarm_ == Alarm::kTransfer;
  const double effect = LastingEffect(verified_);
  const double noise = (transfer ? transfer_noise_ : skew_noise_).Deviation();
  const double least = transfer ? kLeastEffect : kLeastSkewEffect;
  if (std::abs(effect) >= std::max(least, kNoiseTimes * noise)) {
    return Decide(effect, SpreadAround(MedianOf(verified_units_), verified_units_));
  }
  Dismiss();
  return std::nullopt;
}

std::optional<RegimeChange> TimingDetector::Decide(double effect, double spreads_apart) {
  RegimeChange change{Regime::kStraggler, std::exp(effect), first_verified_ns_};
  if (alarm_ == Alarm::kTransfer) {
    level_ += effect;
    change.regime = spreads_apart > 2 ? Regime::kCongested : Regime::kDegradedLink;
    if (level_ < kLeastEffect) change.regime = Regime::kNormal;
  } else if (effect < 0) {
    change.regime = level_ < kLeastEffect ? Regime::kNormal : regime_;
  }
  regime_ = change.regime;
  RelearnAll();
  return change;
}

void TimingDetector::Dismiss() {
  ++dismissed_;
  alarm_ = Alarm::kNone;
  transfer_ = skew_ = Cusum();
  // What looked like a change for so long belongs to the noise.
  const double mean = MedianOf(verified_);
  transfer_noise_.variance = std::max(transfer_noise_.variance, mean * mean / 9);
  ForgetVerified();
}

void TimingDetector::RelearnAll() {
  streams_.clear();
  alarm_ = Alarm::kNone;
  transfer_ = skew_ = Cusum();
  ForgetVerified();
}

void TimingDetector::ForgetVerified() {
  verified_.clear();
  verified_units_.clear();
  most_of_stream_ = 0;
  for (auto& [id, stream] : streams_) stream.verified = 0;
}

}  // namespace dynamiccl
