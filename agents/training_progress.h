// SPDX-License-Identifier: Apache-2.0
// Tells the user during a training what is being trained, on how much data, and how long it will still take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "src/base/progress_line.h"

namespace dynamiccl::agents {

// The progress of the training of one network.
struct TrainingPosition {
  // Iterations that are done, and how many there will be.
  int done = 0;
  int iterations = 0;
  // Number of samples that the training draws from.
  size_t samples = 0;
};

// Called after each iteration of a training; empty: nobody wants to know. It does not change the training.
using TrainingObserver = std::function<void(const TrainingPosition&)>;

// The phases of one training on a ProgressLine: one line when a phase begins, and one from time to time while
// it iterates. The training owns it and calls it on its own thread.
class TrainingPhases {
 public:
  // `progress` outlives the phases. `count` is how many there will be.
  TrainingPhases(ProgressLine& progress, int count) : progress_(progress), count_(count) {}

  // Begins the next phase: "2 of 4: config agent: 3000 iterations on 2512 measured configs". `sample` is the
  // plural of what the phase learns from, such as "measured configs".
  void Begin(const std::string& name, const std::string& what, const std::string& sample = "");
  // Shows the iterations of the phase that has begun. It lives no longer than this object.
  TrainingObserver Observer();

 private:
  std::string Line(const TrainingPosition& position) const;

  ProgressLine& progress_;
  const int count_;
  int number_ = 0;
  std::string name_;
  std::string sample_;
  int64_t begun_ns_ = 0;
};

}  // namespace dynamiccl::agents
