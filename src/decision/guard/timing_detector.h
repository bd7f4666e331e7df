// SPDX-License-Identifier: Apache-2.0
// Notices that the fabric changed, from the times of one communicator's collectives.
//  1. Each stream of alike calls (one key and one config) has a reference: the median and spread of its log
//     times. A call's residual, in spreads, is limited to 3 so that one stall counts little.
//  2. The residuals of all streams go into one two-sided CUSUM, and the arrival skew between ranks goes into
//     another: up = max(0, up + residual - drift), and the same downwards. An alarm is raised when up or down
//     is above a threshold.
//  3. An alarm begins a verification of the next calls. The change is believed if their median or mean is off
//     the references by at least 10 % (skew: 20 %). It must also be off by five times the standard deviation
//     that the mean of as many calls has without any change (block_noise.h). If an effect lasts but may still
//     be noise, the verification is extended to at most eight times its length.
//  4. A change of transfer times means a change of the fabric: congestion if the times also vary more, else a
//     degraded link. A change of skew alone means a straggler: no choice caused it, and what is known about
//     the fabric stays valid.
//
// Source: Page, "Continuous inspection schemes", Biometrika 41 (1954), for CUSUM; verification by effect as
// published for fail-slow detection in training clusters (Greyhound, USENIX ATC 2025). How it compares with
// other detectors: docs/results/agents-timing.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "src/collective/role.h"
#include "src/decision/guard/block_noise.h"
#include "src/decision/guard/time_reference.h"

namespace dynamiccl {

// One timed call.
struct TimedSample {
  uint64_t stream = 0;      // key and config as one number
  int64_t at_ns = 0;        // when the call was issued
  double log_transfer = 0;  // log of nanoseconds, least of the ranks that were timed
  double log_skew = -1;  // log(1 + skew / transfer), skew being last minus first arrival; below 0: not known
  // False for a call that was timed because a change is suspected. Such calls are not typical, so no
  // reference is learnt from them.
  bool is_usual = true;
};

// A verified change.
struct RegimeChange {
  Regime regime = Regime::kNormal;  // the regime from now on
  bool of_fabric = true;            // false: ranks became late, or are no longer late
  double effect = 1;                // time over the time before; for a straggler, skew over the skew before
  int64_t since_ns = 0;             // when the first call of the verification was issued
};

// The detector of one communicator, owned by its Guard; one thread. PaceWatch and StepWatch own further
// detectors, for gaps between calls and for times of steps. Times are arguments, so equal samples give equal
// changes. Each change is reported once. An alarm that noise raised costs only a verification.
class TimingDetector {
 public:
  // Settings that studies vary to compare detectors at equal rates of false alarms. Jobs use the defaults.
  struct Studied {
    // Factor of the evidence that an alarm and a verification need.
    double strictness = 1;
    // A verification may end after a quarter of its span if the effect is at least this many standard
    // deviations of a block's mean; 0: never early.
    double early_noise_times = 0;
  };
  TimingDetector() = default;
  // For studies.
  explicit TimingDetector(const Studied& studied) : studied_(studied) {}
  // A verification takes at least this many nanoseconds: some training steps, if their time is known.
  void SetLeastSpan(int64_t ns) { least_span_ns_ = ns; }
  // Forgets the usual times, because other configs are in use from now on. Ends an alarm.
  void Forget();
  // Moves the usual transfer times of all streams by `by`, in logs, because other configs are in use from now
  // on and their effect is known. Ends an alarm.
  void Expect(double by);
  // Adds a timed call, in order. Returns the change if this call completes the verification of one.
  std::optional<RegimeChange> Take(const TimedSample& sample);
  // Withdraws the last change of the fabric, because the times of steps show that it was noise. The same
  // effect alone will not pass a verification again.
  void Refute();
  // True while an alarm is being verified: more calls should be timed.
  bool verifying() const { return alarm_ != Alarm::kNone; }
  // The regime as last reported: kStraggler while ranks are late, else the state of the fabric.
  Regime regime() const { return late_ranks_ ? Regime::kStraggler : fabric_; }
  Regime fabric() const { return fabric_; }
  // Number of alarms that the verification did not confirm.
  uint64_t dismissed() const { return dismissed_; }

 private:
  enum class Alarm : uint8_t { kNone, kTransfer, kSkew };
  // Holds the detector's state for one stream.
  struct Stream {
    TimeReference transfer;
    TimeReference skew;
    size_t verified = 0;  // calls since the alarm
  };
  // The stream of a residual that is being verified, and the stream's spread.
  struct Source {
    uint64_t stream = 0;
    double spread = 0;  // spread of that stream
  };
  // Two-sided CUSUM of residuals in spreads.
  struct Cusum {
    double up = 0;
    double down = 0;
    void Take(double spreads);
    bool above(double threshold) const { return up > threshold || down > threshold; }
  };
  // Adds a sample while there is no alarm.
  void Watch(const TimedSample& sample, Stream& stream);
  // True when the verification has enough calls over a long enough time.
  bool VerifiedEnough() const;
  std::optional<RegimeChange> VerifyEarly();
  // Returns the effect, in logs, that every quarter of the verified calls shows; 0 if the quarters disagree
  // on its sign.
  double LastingEffect();
  std::optional<RegimeChange> Verify();
  // Returns how much the verified calls vary, in units of their streams' spread.
  double SpreadOfVerified() const;
  BlockNoise& noise() { return alarm_ == Alarm::kTransfer ? transfer_noise_ : skew_noise_; }
  // Decide ends a verification with a change and Dismiss ends it without one. Both call EndVerification.
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
  // The residuals since the alarm, in logs, and the stream of each.
  std::vector<double> verified_;
  std::vector<Source> verified_of_;
  // Calls in the verification under way that belong to its most frequent stream.
  size_t most_of_stream_ = 0;
  // Length of the verification as a multiple of its usual length. It grows while an effect lasts that may be
  // noise.
  int spans_ = 1;
  // Number of samples in a row without the time that the verification needs.
  size_t since_alarm_ = 0;
  int64_t first_verified_ns_ = 0;
  int64_t last_verified_ns_ = 0;
  int64_t least_span_ns_ = 0;
  // Log of the present transfer time over that of the normal regime: the sum of all changes.
  double level_ = 0;
  Regime fabric_ = Regime::kNormal;
  // The last change of the fabric: its effect in logs, how many calls showed it, and the state before it.
  struct LastChange {
    double effect = 0;
    size_t calls = 0;
    Regime before = Regime::kNormal;
  };
  LastChange last_change_;
  bool late_ranks_ = false;
  uint64_t dismissed_ = 0;
};

}  // namespace dynamiccl
