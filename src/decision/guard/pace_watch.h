// SPDX-License-Identifier: Apache-2.0
// Notices a change in the pace of a program's calls, from the times at which they are issued alone. It is a
// cheap reason to time more calls for a while, since usually only 1 % of them are timed. A program that waits
// for its collectives slows down with them at once; a host that runs ahead of its device slows down a little
// later.
#pragma once

#include <cstdint>

#include "src/decision/guard/timing_detector.h"

namespace dynamiccl {

// The watch of one communicator, owned by its Guard on the leader's control thread. It decides no choice: it
// only asks for times, for at most 1 % of the calls plus 512.
class PaceWatch {
 public:
  // Adds an issued call, in order. `stream` is its key and config as one number; 0: the call is a trial, so
  // the gap after it is not judged.
  void Take(uint64_t stream, int64_t issued_ns);
  // True while calls are worth timing.
  bool wants_times() const { return calls_ < until_; }

 private:
  // Calls that are timed for one request: enough for the timing detector to raise an alarm and to verify it.
  static constexpr uint64_t kAsked = 64;
  // For suspected and for verified changes of pace each, at most this share of all calls plus kFirstAsked
  // calls is timed. They are counted separately: an unsteady program is suspected all the time, and must not
  // use up what a verified change needs.
  static constexpr double kMaxShare = 0.005;
  static constexpr uint64_t kFirstAsked = 256;

  void Ask(uint64_t& asked);

  // Judges the gap from one call to the next as if it were the transfer time of the first call.
  TimingDetector detector_;
  uint64_t last_stream_ = 0;
  int64_t last_issued_ns_ = 0;
  bool suspected_ = false;
  uint64_t calls_ = 0;
  // Calls asked for so far, by reason.
  uint64_t asked_on_suspicion_ = 0;
  uint64_t asked_on_change_ = 0;
  // Number of the first call that is no longer to be timed.
  uint64_t until_ = 0;
};

}  // namespace dynamiccl
