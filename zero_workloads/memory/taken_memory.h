// SPDX-License-Identifier: Apache-2.0
// Pretends that other programs occupy a part of a rank's memory. A test or an operator prescribes how much,
// by a schedule of steps or by a file that may change at any time. With --batch auto, the batch then follows
// the free memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/status.h"

namespace dynamiccl::zero {

// The value of --memory-taken. StepBatch owns one and asks it before each step, on the training thread.
class TakenMemory {
 public:
  // Accepts "0:0,20:24M,40:0" (from step 20 on 24 MiB are taken, from step 40 on nothing) with rising
  // steps, or "file:PATH" with a file whose first word is a size. The empty text means that nothing is ever
  // taken. K, M and G are powers of 1024. An error says which entry is wrong, or that the file cannot be
  // read.
  static Result<TakenMemory> Parse(const std::string& text);

  // Returns the bytes that are taken during `step`. Steps must not decrease from call to call. A file is read
  // at each call. If the file is missing or contains no size, its latest valid value applies (0 before the
  // first).
  int64_t At(int64_t step);

 private:
  // From `step` on, `bytes` are taken.
  struct Change {
    int64_t step, bytes;
  };

  // Path of the file; empty with a schedule.
  std::string path_;
  // The schedule, sorted by step.
  std::vector<Change> schedule_;
  // The latest value.
  int64_t last_ = 0;
};

// Bytes from a number with an optional unit K, M or G (powers of 1024): "24M", "1G", "4096". Negative
// numbers, other units and overflow are errors.
Result<int64_t> ParseSize(const std::string& text);

}  // namespace dynamiccl::zero
