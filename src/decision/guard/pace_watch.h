// SPDX-License-Identifier: Apache-2.0
// Notices that a program's calls come at another pace, from the times at which they are issued alone. It is a
// cheap reason to time calls for a while where only 1 % of them are timed. A program that waits for its
// collectives slows down with them at once; a host that runs ahead of its device does so a little later.
#pragma once

#include <cstdint>

#include "src/decision/guard/timing_detector.h"

namespace dynamiccl {

// The watch of one communicator, owned by its Guard on the leader's control thread. No choice depends on it:
// it only asks for times, for at most 1 % of the calls beside the first 512.
class PaceWatch {
 public:
  // Adds a call that was issued, in order. `stream` is its key and config as one number; 0: the call is not
  // usual (a trial), so the time after it is not judged.
  void Take(uint64_t stream, int64_t issued_ns);
  // True while calls are worth timing.
  bool wants_times() const { return calls_ < until_; }

 private:
  // Calls that are timed for one request: enough for the timing detector to raise an alarm and to verify it.
  static constexpr uint64_t kAsked = 64;
  // Share of all calls that may be asked for, and calls that may be asked for before that share is enough.
  // Each of two reasons has its own allowance: a pace that is suspected to have changed, of which unsteady
  // programs use up all, and a pace that was verified to have changed.
  static constexpr double kMaxShare = 0.005;
  static constexpr uint64_t kFirstAsked = 256;

  void Ask(uint64_t& asked);

  // Judges the time from one call to the next as if it were the transfer time of the first.
  TimingDetector detector_;
  uint64_t last_stream_ = 0;
  int64_t last_issued_ns_ = 0;
  bool suspected_ = false;
  uint64_t calls_ = 0;
  // Calls asked for so far, by reason.
  uint64_t asked_on_suspicion_ = 0;
  uint64_t asked_on_change_ = 0;
  // Number of the first call that need not be timed any more.
  uint64_t until_ = 0;
};

}  // namespace dynamiccl
