// SPDX-License-Identifier: Apache-2.0
// Notices a change in the pace of a program from the times at which its calls are issued. Usually only 1 % of
// the calls are timed; a changed pace is a cheap reason to time more of them for a while. A program that
// waits for its collectives slows down with them at once. A host that runs ahead of its device slows down a
// little later.
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
  // True while the leader should have every call timed.
  bool wants_times() const { return calls_ < until_; }

 private:
  // Number of calls that are timed for one suspicion or change: enough for the timing detector to raise an
  // alarm and to verify it.
  static constexpr uint64_t kAsked = 64;
  // Suspected changes may have at most this share of all calls plus kFirstAsked calls timed, and verified
  // changes as many again. The two are counted separately, because an unsteady program is suspected all the
  // time and must not use up what a verified change needs.
  static constexpr double kMaxShare = 0.005;
  static constexpr uint64_t kFirstAsked = 256;

  void Ask(uint64_t& asked);

  // Judges the gap from one call to the next as if it were the transfer time of the first call.
  TimingDetector detector_;
  uint64_t last_stream_ = 0;
  int64_t last_issued_ns_ = 0;
  bool suspected_ = false;
  uint64_t calls_ = 0;
  // Number of calls that were to be timed so far, for suspicions and for verified changes.
  uint64_t asked_on_suspicion_ = 0;
  uint64_t asked_on_change_ = 0;
  // Calls are timed until this call number.
  uint64_t until_ = 0;
};

}  // namespace dynamiccl
