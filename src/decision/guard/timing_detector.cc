// SPDX-License-Identifier: Apache-2.0
// The four steps of timing_detector.h: Watch feeds the CUSUMs; Take collects residuals once there is an
// alarm; Verify judges them; Decide or Dismiss ends the verification. Residuals are in logs; a residual in
// "spreads" is divided by the standard deviation of its stream.
#include "src/decision/guard/timing_detector.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "src/base/statistics.h"

namespace dynamiccl {
namespace {

// Lower limits of a stream's spread, in logs, for transfers and for skew. A smaller measured spread is not
// trusted.
constexpr double kLeastSpread = 0.02;
constexpr double kLeastSkewSpread = 0.1;
constexpr double kWinsorise = TimeReference::kWinsorise;
// A CUSUM subtracts this many spreads for each call. It is the usual allowance: half of the shift to be
// found, which is one spread.
constexpr double kDrift = 0.5;
// An alarm is raised when a CUSUM is above this many spreads. That takes at least seven calls in a row, since
// a call adds at most 3 - kDrift. Alarms are frequent in noise with memory, and cost only a verification
// (docs/results/guard.md).
constexpr double kThreshold = 16;
// The least number of calls in a verification: the smallest block whose noise is measured.
constexpr size_t kVerified = BlockNoise::kLeastCalls;
// If nearly all calls of a job have one key, this many of them complete a verification, however short its
// time is.
constexpr size_t kVerifiedOfStream = 16;
// log(1.1): a change of less than 10 % is not taken for a change of the fabric (docs/guard.md).
constexpr double kLeastEffect = 0.0953;
// log(1.2), because skew varies more than transfer times. A high limit does no harm: a change of the skew
// revokes no choice.
constexpr double kLeastSkewEffect = 0.182;
// An effect must exceed the standard deviation of the mean of as many calls by this factor.
constexpr double kNoiseTimes = 5;
// If an effect proves to be noise, the assumed deviation is raised to the effect divided by this.
constexpr double kAdmittedTimes = 3;
// A verification ends without a result after this many samples in a row that lack the transfer time or skew
// for which it waits. The ranks have then stopped reporting.
constexpr size_t kSamplesInVain = 128;
// If a stream has fewer calls in a verification, its own median is useless, and the median of all calls is
// used.
constexpr size_t kAlikeVerified = 3;
// For normal noise, the standard deviation is 1.25 times the mean absolute deviation. The mean shows bursts
// in half of the calls, which the median of the deviations may miss.
constexpr double kDeviationsOfMeanOff = 1.25;
// A residual counts as at most 6 spreads, or as a factor of 2 in time if that is more. So one stall does not
// look like a burst.
constexpr double kMaxOff = 6;
constexpr double kMaxOfMean = 0.693;  // log(2)
// The calls of a verification are split into four quarters. The mean of a quarter is used only if the quarter
// has this many calls: with fewer, single bursts dominate it.
constexpr size_t kQuarterWithMean = 16;
// A verification whose effect lasts but may still be noise is extended to at most this many times its length
// (docs/guard.md).
constexpr int kMaxSpans = 8;

// `quarters` has one value for each quarter of a verification. Returns the value that is nearest to 0, or 0
// if the signs differ. A burst that is over or has just begun shows only in some quarters, and is no change
// of the fabric.
double LeastOf(const std::array<double, 4>& quarters) {
  double least = quarters[0];
  for (const double off : quarters) {
    if (off * least <= 0) return 0;
    if (std::abs(off) < std::abs(least)) least = off;
  }
  return least;
}

double Winsorised(double spreads) {
  return std::clamp(spreads, -kWinsorise, kWinsorise);
}

// Limits a residual to a factor of 2 in time or kMaxOff spreads, so means show bursts but not single stalls.
double Limited(double residual, double spread) {
  const double most = std::max(kMaxOff * spread, kMaxOfMean);
  return std::clamp(residual, -most, most);
}

}  // namespace

void TimingDetector::Cusum::Take(double spreads) {
  up = std::max(0.0, up + spreads - kDrift);
  down = std::max(0.0, down - spreads - kDrift);
}

std::optional<RegimeChange> TimingDetector::Take(const TimedSample& sample) {
  Stream& stream = streams_[sample.stream];
  if (alarm_ == Alarm::kNone) {
    Watch(sample, stream);
    return std::nullopt;
  }
  const bool transfer = alarm_ == Alarm::kTransfer;
  TimeReference& reference = transfer ? stream.transfer : stream.skew;
  const double value = transfer ? sample.log_transfer : sample.log_skew;
  const double least = transfer ? kLeastSpread : kLeastSkewSpread;
  const auto residual = value < 0 ? std::nullopt : reference.Residual(value, least, sample.is_usual);
  if (!residual) {
    if (++since_alarm_ >= kSamplesInVain) EndVerification();
    return std::nullopt;
  }
  since_alarm_ = 0;
  if (verified_.empty()) first_verified_ns_ = sample.at_ns;
  last_verified_ns_ = sample.at_ns;
  most_of_stream_ = std::max(most_of_stream_, ++stream.verified);
  verified_.push_back(*residual);
  verified_of_.push_back({sample.stream, reference.spread()});
  return Verify();
}

void TimingDetector::Watch(const TimedSample& sample, Stream& stream) {
  if (const auto residual = stream.transfer.Residual(sample.log_transfer, kLeastSpread, sample.is_usual)) {
    transfer_.Take(Winsorised(*residual / stream.transfer.spread()));
    transfer_noise_.Take(Limited(*residual, stream.transfer.spread()));
    if (sample.is_usual) stream.transfer.Follow(*residual, kLeastSpread);
  }
  if (sample.log_skew >= 0) {
    if (const auto residual = stream.skew.Residual(sample.log_skew, kLeastSkewSpread, sample.is_usual)) {
      skew_.Take(Winsorised(*residual / stream.skew.spread()));
      skew_noise_.Take(Limited(*residual, stream.skew.spread()));
      if (sample.is_usual) stream.skew.Follow(*residual, kLeastSkewSpread);
    }
  }
  // A slow fabric also delays arrivals, so transfer times are examined first.
  if (transfer_.above(studied_.strictness * kThreshold)) {
    alarm_ = Alarm::kTransfer;
  } else if (skew_.above(studied_.strictness * kThreshold)) {
    alarm_ = Alarm::kSkew;
  }
}

bool TimingDetector::VerifiedEnough() const {
  const auto spans = static_cast<size_t>(spans_);
  if (verified_.size() < spans * kVerified) return false;
  if (last_verified_ns_ - first_verified_ns_ >= spans_ * least_span_ns_) return true;
  // If at least three quarters of the calls are of one stream, that stream's calls are counted and their
  // duration does not matter.
  return most_of_stream_ >= spans * kVerifiedOfStream && 4 * most_of_stream_ >= 3 * verified_.size();
}

// Returns the effect that all quarters show. The effect of a quarter is its median. For transfers, the effect
// is the mean of the quarter if the mean is larger, because bursts in less than half of the calls do not move
// the median. Skews are not symmetric, so their mean is not comparable with their median.
double TimingDetector::LastingEffect() {
  std::array<double, 4> off{};
  for (size_t quarter = 0; quarter < 4; ++quarter) {
    const size_t from = verified_.size() * quarter / 4, to = verified_.size() * (quarter + 1) / 4;
    const double median = Median(std::span(verified_).subspan(from, to - from));
    off[quarter] = median;
    if (alarm_ != Alarm::kTransfer || to - from < kQuarterWithMean) continue;
    double beside = 0;
    for (size_t i = from; i < to; ++i) beside += Limited(verified_[i] - median, verified_of_[i].spread);
    const double mean = median + beside / static_cast<double>(to - from) - noise().mean();
    if (std::abs(mean) > std::abs(median)) off[quarter] = mean;
  }
  return LeastOf(off);
}

// Ends a verification early if the effect is clear. An effect that is not clear is watched for the whole
// length.
std::optional<RegimeChange> TimingDetector::VerifyEarly() {
  if (studied_.early_noise_times == 0 || verified_.size() < kVerified) return std::nullopt;
  if (4 * (last_verified_ns_ - first_verified_ns_) < least_span_ns_) return std::nullopt;
  const double effect = LastingEffect();
  const double varies = noise().DeviationOf(verified_.size(), 1);
  const double least = alarm_ == Alarm::kTransfer ? kLeastEffect : kLeastSkewEffect;
  if (std::abs(effect) < std::max(least, studied_.strictness * studied_.early_noise_times * varies))
    return std::nullopt;
  return Decide(effect, SpreadOfVerified());
}

std::optional<RegimeChange> TimingDetector::Verify() {
  if (!VerifiedEnough()) return VerifyEarly();
  const bool transfer = alarm_ == Alarm::kTransfer;
  const double effect = LastingEffect();
  const double varies = noise().DeviationOf(verified_.size(), spans_);
  const double least = transfer ? kLeastEffect : kLeastSkewEffect;
  if (std::abs(effect) >= std::max(least, studied_.strictness * kNoiseTimes * varies)) {
    return Decide(effect, SpreadOfVerified());
  }
  if (std::abs(effect) >= least && spans_ < kMaxSpans) {
    ++spans_;
  } else {
    Dismiss(effect);
  }
  return std::nullopt;
}

// Each stream varies around its own median. A slower link slows large calls more than small ones, and this
// difference must not count as variation.
double TimingDetector::SpreadOfVerified() const {
  std::map<uint64_t, std::vector<double>> of_stream;
  for (size_t i = 0; i < verified_.size(); ++i) of_stream[verified_of_[i].stream].push_back(verified_[i]);
  double off = 0;
  for (size_t i = 0; i < verified_.size(); ++i) {
    const std::vector<double>& alike = of_stream[verified_of_[i].stream];
    const double middle = Median(alike.size() < kAlikeVerified ? verified_ : alike);
    off += std::min(std::abs(verified_[i] - middle) / verified_of_[i].spread, kMaxOff);
  }
  return kDeviationsOfMeanOff * off / static_cast<double>(verified_.size());
}

void TimingDetector::Forget() {
  streams_.clear();
  transfer_noise_.Recentre();
  skew_noise_.Recentre();
  EndVerification();
}

void TimingDetector::Expect(double by) {
  for (auto& [id, stream] : streams_) stream.transfer.Expect(by);
  EndVerification();
}

RegimeChange TimingDetector::Decide(double effect, double spreads_apart) {
  RegimeChange change{Regime::kNormal, alarm_ == Alarm::kTransfer, std::exp(effect), first_verified_ns_};
  if (change.of_fabric) {
    last_change_ = {effect, verified_.size(), fabric_};
    level_ += effect;
    // The fabric is congested if calls vary by more than twice their usual spread. Otherwise a link is
    // degraded.
    fabric_ = spreads_apart > 2 ? Regime::kCongested : Regime::kDegradedLink;
    if (level_ < kLeastEffect) fabric_ = Regime::kNormal;
    streams_.clear();
    transfer_noise_.Recentre();
  } else {
    late_ranks_ = effect > 0;
    for (auto& [id, stream] : streams_) stream.skew = {};
  }
  change.regime = regime();
  EndVerification();
  return change;
}

// The noise is raised to a third of the effect, so the same effect is only three deviations the next time,
// which is below kNoiseTimes.
void TimingDetector::Refute() {
  transfer_noise_.Admit(std::abs(last_change_.effect) / kAdmittedTimes, last_change_.calls);
  level_ -= last_change_.effect;
  fabric_ = last_change_.before;
  last_change_.effect = 0;
}

void TimingDetector::Dismiss(double effect) {
  ++dismissed_;
  // An effect that lasted for the whole verification but was too small is noise, and raises the assumed
  // deviation. A burst that has ended has an effect of 0 here and raises nothing.
  noise().Admit(std::abs(effect) / kAdmittedTimes, verified_.size());
  for (size_t i = 0; i < verified_.size(); ++i) noise().Take(Limited(verified_[i], verified_of_[i].spread));
  // A small effect becomes the usual level; otherwise the same alarm would come again and again.
  const bool small = std::abs(effect) < kLeastEffect;
  for (auto& [id, stream] : streams_)
    (alarm_ == Alarm::kTransfer ? stream.transfer : stream.skew).Shift(small ? effect : 0);
  EndVerification();
}

void TimingDetector::EndVerification() {
  alarm_ = Alarm::kNone;
  transfer_ = skew_ = Cusum();
  verified_.clear();
  verified_of_.clear();
  most_of_stream_ = 0;
  spans_ = 1;
  since_alarm_ = 0;
  for (auto& [id, stream] : streams_) stream.verified = 0;
}

}  // namespace dynamiccl
