// SPDX-License-Identifier: Apache-2.0
// An NCCL that does nothing, for measuring what an interposer and a tuner add to a call. This header declares
// its functions that NCCL does not have.
#pragma once

#include <cstdint>

// Results for timed questions to the tuner.
struct IdleQuestions {
  // Number of questions for which the tuner made a choice.
  uint64_t answered;
  // Duration of the last question, including one reading of the clock.
  double last_ns;
};

extern "C" {
// Switches timing on or off. Call all of these functions from one thread.
void idleNcclTimeQuestions(bool timed);
IdleQuestions idleNcclQuestions();
// Runs `hook` inside every call, at the point where NCCL calls its profiler. With null, nothing runs there.
void idleNcclRunDuringCalls(void (*hook)());
}
