// SPDX-License-Identifier: Apache-2.0
// Notices a lasting change in the time of whole training steps. Only few calls of a job are timed, and some
// releases of NCCL time none, but steps always have a time. The program itself can change that time too, so a
// change of steps is no proof that the fabric changed.
#pragma once

#include <cstdint>

#include "src/decision/guard/timing_detector.h"

namespace dynamiccl {

// The watch of one communicator, owned by its Guard on the leader's control thread.
class StepWatch {
 public:
  // Adds the time of a step that ended at `at_ns`: the log of its nanoseconds, as StepExperiment::Take
  // returns it. Returns true if this step completes the proof of a change by 10 % or more. That takes 23
  // samples after the change; a sample is one step, or several that together last kLeastNs.
  bool Take(double log_ns, int64_t at_ns);
  // Forgets the usual time, because steps use other configs from now on.
  void Forget();

 private:
  // Shorter steps are combined up to this time, so that a burst of other traffic of 300 ms is not taken for a
  // change.
  static constexpr double kLeastNs = 20e6;

  TimingDetector detector_;
  double sum_ns_ = 0;  // time of the steps that are being combined
  int steps_ = 0;
};

}  // namespace dynamiccl
