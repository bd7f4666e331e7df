// SPDX-License-Identifier: Apache-2.0
// Finds out whether whole training steps take longer or shorter after the durations of calls have changed. A
// collective beside computation can take longer or shorter without any effect on the step, for example
// because the ranks' kernels meet other kernels on the device. The guard ignores a change that has no effect
// on steps.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "src/decision/guard/block_noise.h"

namespace dynamiccl {

// The witness of one communicator, owned by its Guard on the leader's control thread.
class StepWitness {
 public:
  // Steps after the suspicion that are compared with those before it.
  static constexpr size_t kStepsAfter = 16;

  // Call this when the times of calls show a change. Returns false if too few steps were seen before; the
  // witness can then say nothing about this change.
  bool Suspect();
  // Adds the log of a step's nanoseconds. If this step completes a comparison, returns whether steps have
  // changed: by 3 % or more, and by more than three standard deviations of the mean of as many steps.
  std::optional<bool> Take(double log_ns);
  // Forgets the steps and a pending comparison, because steps use other configs from now on.
  void Forget();

 private:
  // Steps before a suspicion with which later steps are compared. The last few of them may be slower or
  // faster already, because a suspicion takes some time to arise.
  static constexpr size_t kStepsBefore = 32;
  static constexpr size_t kStepsBetween = 24;
  static constexpr size_t kKept = kStepsBefore + kStepsBetween;

  std::array<double, kKept> last_{};  // a ring
  uint64_t taken_ = 0;
  BlockNoise noise_;
  double first_ = 0;      // the level from which residuals are taken
  double before_ = 0;     // mean log before the suspicion
  double sum_after_ = 0;  // sum of the logs of the steps after the suspicion
  size_t after_ = 0;      // number of steps still to come; 0: nothing is suspected
};

}  // namespace dynamiccl
