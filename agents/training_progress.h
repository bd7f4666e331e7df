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
  // Number of iterations that are done, and number of all iterations.
  int done = 0;
  int iterations = 0;
  // Number of samples that the training draws from.
  size_t samples = 0;
};

// Called after each iteration of a training, to show its progress. An empty function is allowed.
using TrainingObserver = std::function<void(const TrainingPosition&)>;

// Shows the phases of one training on a ProgressLine: one line when a phase begins, and more lines while the
// phase iterates. The training owns the object and calls it on its own thread.
class TrainingPhases {
 public:
  // `progress` must outlive this object. `count` is the number of phases.
  TrainingPhases(ProgressLine& progress, int count) : progress_(progress), count_(count) {}

  // Begins the next phase, for example "2 of 4: config agent: 3000 iterations on 2512 measured configs".
  // `sample` is the plural of what the phase learns from, such as "measured configs".
  void Begin(const std::string& name, const std::string& what, const std::string& sample = "");
  // Returns the observer that shows the iterations of the present phase. This object must outlive the
  // observer.
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
