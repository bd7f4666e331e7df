// SPDX-License-Identifier: Apache-2.0
// Notices that the fabric changed, from the times of one communicator's collectives, on the leader.
//   1. Each stream of alike calls (key and config) has a reference, median and spread of its log times;
//      a call's residual in spreads is winsorised, so that one stall counts little.
//   2. The residuals of all streams go into one two-sided CUSUM; the arrival skew between ranks into another.
//   3. An alarm only begins a verification: the next calls must lie off their references, by their median or
//      mean, by 10 % and by what blocks of as many calls were seen to vary by themselves (block_noise.h);
//      what lasts but may still be noise is looked at for longer.
//   4. Transfer times that changed mean the fabric: congested where they also spread, a degraded link where
//      not. Skew alone means a straggler: no choice is to blame, and what is known of the fabric holds.
// Source: Page, "Continuous inspection schemes", Biometrika 41 (1954), for CUSUM; verification by effect as
// published for fail-slow detection in training clusters (Greyhound, USENIX ATC 2025).
// Leader only, one thread; times are passed in.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "src/collective/role.h"
#include "src/decision/guard/block_noise.h"
#include "src/decision/guard/time_reference.h"

namespace dynamiccl {

struct TimedSample {
  uint64_t stream = 0;  // key and config
  int64_t at_ns = 0;
  double log_transfer = 0;  // of nanoseconds, least of the ranks that were timed
  double log_skew = -1;     // log(1 + last minus first arrival / transfer); below 0: not known
  // False: taken because a change is suspected, so no measure of what is usual.
  bool is_usual = true;
};

struct RegimeChange {
  Regime regime = Regime::kNormal;
  bool of_fabric = true;  // false: ranks became late, or are so no more
  double effect = 1;      // time over time before; of a straggler: skew over skew before
  int64_t since_ns = 0;   // when the first call that was verified was issued
};

class TimingDetector {
 public:
  struct Studied {
    // Times the evidence that an alarm and a verification ask for; to compare ways at equal rates of false
    // alarms.
    double strictness = 1;
    // A verification ends after a quarter of its span where the effect is so many deviations of a block's
    // mean off; 0: never.
    double early_noise_times = 0;
  };
  TimingDetector() = default;
  // For studies.
  explicit TimingDetector(const Studied& studied) : studied_(studied) {}
  // Verification spans at least so long: some steps, where they are known.
  void SetLeastSpan(int64_t ns) { least_span_ns_ = ns; }
  std::optional<RegimeChange> Take(const TimedSample& sample);
  // An alarm waits for its verification: more calls should be timed.
  bool verifying() const { return alarm_ != Alarm::kNone; }
  // kStraggler while ranks are late, else the fabric's.
  Regime regime() const { return late_ranks_ ? Regime::kStraggler : fabric_; }
  Regime fabric() const { return fabric_; }
  // Alarms that verification found to be none.
  uint64_t dismissed() const { return dismissed_; }

 private:
  enum class Alarm : uint8_t { kNone, kTransfer, kSkew };
  struct Stream {
    TimeReference transfer;
    TimeReference skew;
    size_t verified = 0;  // calls since the alarm
  };
  // Of a residual that is being verified.
  struct Source {
    uint64_t stream = 0;
    double spread = 0;  // of the stream
  };
  struct Cusum {
    double up = 0;
    double down = 0;
    void Take(double spreads);
    bool above(double threshold) const { return up > threshold || down > threshold; }
  };
  void Watch(const TimedSample& sample, Stream& stream);
  bool VerifiedEnough() const;
  std::optional<RegimeChange> VerifyEarly();
  double LastingEffect();
  std::optional<RegimeChange> Verify();
  double SpreadOfVerified() const;
  BlockNoise& noise() { return alarm_ == Alarm::kTransfer ? transfer_noise_ : skew_noise_; }
  RegimeChange Decide(double effect, double spreads_apart);
  void Dismiss(double effect);
  void EndVerification();

  Studied studied_;
  std::map<uint64_t, Stream> streams_;
  Cusum transfer_;
  Cusum skew_;
  BlockNoise transfer_noise_;
  BlockNoise skew_noise_;
  Alarm alarm_ = Alarm::kNone;
  std::vector<double> verified_;     // residuals in logs since the alarm
  std::vector<Source> verified_of_;  // where they come from
  size_t most_of_stream_ = 0;
  int spans_ = 1;           // of which verification takes all
  size_t since_alarm_ = 0;  // samples, of which some have no such time
  int64_t first_verified_ns_ = 0;
  int64_t last_verified_ns_ = 0;
  int64_t least_span_ns_ = 0;
  double level_ = 0;  // log of transfer time over that of the normal regime
  Regime fabric_ = Regime::kNormal;
  bool late_ranks_ = false;
  uint64_t dismissed_ = 0;
};

}  // namespace dynamiccl
