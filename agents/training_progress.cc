// SPDX-License-Identifier: Apache-2.0
#include "agents/training_progress.h"

#include <fmt/format.h>

#include "src/base/clock.h"

namespace dynamiccl::agents {

void TrainingPhases::Begin(const std::string& name, const std::string& what, const std::string& sample) {
  ++number_;
  name_ = name;
  sample_ = sample;
  begun_ns_ = MonotonicNanoseconds();
  progress_.Show(fmt::format("{} of {}: {}: {}", number_, count_, name_, what));
}

TrainingObserver TrainingPhases::Observer() {
  // The time left is estimated from the iterations after the first call. The time before the first call, for
  // example to generate sequences, says nothing about how long an iteration takes.
  return [this, first = 0, first_ns = int64_t{0}](const TrainingPosition& position) mutable {
    if (first == 0) {
      first = position.done;
      first_ns = MonotonicNanoseconds();
    }
    if (!progress_.IsDue()) return;
    const double seconds = static_cast<double>(MonotonicNanoseconds() - first_ns) * 1e-9;
    progress_.Show(Line(position) +
                   TimeLeftText(seconds, position.done - first, position.iterations - first));
  };
}

// For example "1 of 4: structure agent: iteration 1200 of 10000 on 581 sequences, 34 s".
std::string TrainingPhases::Line(const TrainingPosition& position) const {
  const double seconds = static_cast<double>(MonotonicNanoseconds() - begun_ns_) * 1e-9;
  return fmt::format("{} of {}: {}: iteration {} of {} on {} {}, {}", number_, count_, name_, position.done,
                     position.iterations, position.samples, sample_, RoughTime(seconds));
}

}  // namespace dynamiccl::agents
