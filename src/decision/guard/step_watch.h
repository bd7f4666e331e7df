// SPDX-License-Identifier: Apache-2.0
// Notices that whole training steps take longer or shorter than before, and go on to. Few calls of a job are
// timed, and some releases of NCCL time none; steps always have a time. The program can change it too, so a
// change of steps is no proof that the fabric changed.
#pragma once

#include <cstdint>

#include "src/decision/guard/timing_detector.h"

namespace dynamiccl {

// The watch of one communicator, owned by its Guard on the leader's control thread.
class StepWatch {
 public:
  // Adds the time of a step that ended at `at_ns`, as StepExperiment::Take returns it: the log of its
  // nanoseconds. Returns true if this step completes the proof of a change by 10 % or more. That takes 23
  // samples after the change, each of one step or of kLeastNs.
  bool Take(double log_ns, int64_t at_ns);
  // Other configs are in use from now on, so steps take another time for that reason.
  void Forget();

 private:
  // Shorter steps are put together, so that a burst of other traffic of 300 ms is no change.
  static constexpr double kLeastNs = 20e6;

  TimingDetector detector_;
  double sum_ns_ = 0;  // of the steps that are being put together
  int steps_ = 0;
};

}  // namespace dynamiccl
