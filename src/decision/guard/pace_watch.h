// SPDX-License-Identifier: Apache-2.0
// Notices that a program's calls come at another pace, from when they are issued alone: a cheap reason to
// time calls for a while, where only 1 % of them are. A program that waits for its collectives slows down
// with them, a host that runs ahead does so a little later. No choice depends on it: it only asks for times.
#pragma once

#include <cstdint>

#include "src/decision/guard/timing_detector.h"

namespace dynamiccl {

class PaceWatch {
 public:
  // A call of this stream (its key and config) was issued; 0: none that is usual, like a trial. In order.
  void Take(uint64_t stream, int64_t issued_ns);
  // Calls now are worth timing.
  bool wants_times() const { return calls_ < until_; }

 private:
  // Enough for the detector of times to alarm and to verify.
  static constexpr uint64_t kAsked = 64;
  // Share of all calls that are asked for at most, and so many before there are enough of them: once because
  // the pace is suspected to have changed, which unsteady programs use up, and once because it has.
  static constexpr double kMaxShare = 0.005;
  static constexpr uint64_t kFirstAsked = 256;

  void Ask(uint64_t& asked);

  TimingDetector detector_;
  uint64_t last_stream_ = 0;
  int64_t last_issued_ns_ = 0;
  bool suspected_ = false;
  uint64_t calls_ = 0;
  uint64_t asked_on_suspicion_ = 0;
  uint64_t asked_on_change_ = 0;
  uint64_t until_ = 0;
};

}  // namespace dynamiccl
