// SPDX-License-Identifier: Apache-2.0
// An NCCL that does nothing, to measure what an interposer and a tuner add to a call. This header has its
// functions beyond NCCL's own.
#pragma once

#include <cstdint>

// Questions to the tuner that were timed.
struct IdleQuestions {
  // Questions that the tuner answered with a choice.
  uint64_t answered;
  // Duration of the last question, including one reading of the clock.
  double last_ns;
};

extern "C" {
// Switches timing on or off. Call all of these functions from one thread.
void idleNcclTimeQuestions(bool timed);
IdleQuestions idleNcclQuestions();
// Runs `hook` inside every call, where NCCL would call its profiler; null: nothing.
void idleNcclRunDuringCalls(void (*hook)());
}
