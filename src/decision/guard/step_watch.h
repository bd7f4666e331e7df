// SPDX-License-Identifier: Apache-2.0
// Notices a lasting change in the time of whole training steps. Every step is timed. Only few calls of a job
// are timed, and with some releases of NCCL no calls are timed. The program itself can change its step time
// too, so such a change is no proof that the fabric changed.
#pragma once

#include <cstdint>
#include <optional>

#include "src/decision/guard/timing_detector.h"

namespace dynamiccl {

// The watch of one communicator, owned by its Guard on the leader's control thread.
class StepWatch {
 public:
  // Adds the time of a step that ended at `at_ns`. `log_ns` is the log of its nanoseconds, as
  // StepExperiment::Take returns it. If this step completes the proof of a change by 10 % or more, returns
  // the step's time over that before the change. The proof takes 23 samples after the change. A sample is one
  // step, or several that together last kLeastNs.
  std::optional<double> Take(double log_ns, int64_t at_ns);
  // Call this when steps begin to use other configs, which change the log of a step's time by `effect`. The
  // usual time moves by `effect`, so a change of the fabric right afterwards is not missed. Without an effect
  // the usual time is forgotten.
  void Adopt(std::optional<double> effect);
  void Forget() { Adopt(std::nullopt); }

 private:
  // Steps that are shorter than this many nanoseconds are combined up to this time. A burst of other traffic
  // of 300 ms is then too short for 23 samples.
  static constexpr double kLeastNs = 20e6;

  TimingDetector detector_;
  double sum_ns_ = 0;  // time of the steps that are being combined
  int steps_ = 0;
};

}  // namespace dynamiccl
