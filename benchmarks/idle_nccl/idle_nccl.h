// SPDX-License-Identifier: Apache-2.0
// An NCCL that does nothing, for measuring what an interposer and a tuner add to a call: what it tells beside
// NCCL's own functions.
#pragma once

#include <cstdint>

// Of the questions that were timed.
struct IdleQuestions {
  uint64_t answered = 0;  // by a choice of the tuner's
  double last_ns = 0;     // how long the last one took, with one reading of the clock
};

extern "C" {
// One thread.
void idleNcclTimeQuestions(bool timed);
IdleQuestions idleNcclQuestions();
// Inside every call, where NCCL would tell its profiler; null: nothing.
void idleNcclRunDuringCalls(void (*hook)());
}
