// SPDX-License-Identifier: Apache-2.0
#include "agents/training_progress.h"

#include <gtest/gtest.h>

#include <memory>

namespace dynamiccl::agents {
namespace {

struct ManualClock final : Clock {
  int64_t Now() const override { return now_ns; }
  int64_t now_ns = 0;
};

TEST(TrainingPhases, SayWhatBeginsAndHowFarItIsFromTimeToTime) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  ManualClock clock;
  ProgressLine progress(file.get(), false, clock);
  TrainingPhases phases(progress, 2);
  phases.Begin("structure agent", "8 iterations on sequences", "sequences");
  const TrainingObserver observer = phases.Observer();
  for (int done = 1; done <= 8; ++done) {
    clock.now_ns += 1'000'000'000;
    observer({done, 8, 581});
  }
  phases.Begin("trees", "on 48 measured configs");
  std::rewind(file.get());
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  EXPECT_EQ(text,
            "dynamiccl: 1 of 2: structure agent: 8 iterations on sequences\n"
            "dynamiccl: 1 of 2: structure agent: iteration 5 of 8 on 581 sequences, 0 s, about 0 s left\n"
            "dynamiccl: 2 of 2: trees: on 48 measured configs\n");
}

}  // namespace
}  // namespace dynamiccl::agents
