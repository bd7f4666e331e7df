// SPDX-License-Identifier: Apache-2.0
// Chooses how many sequences a rank computes at once, so that a step uses the memory that is free and no
// more. The class only does arithmetic: its caller, StepBatch, measures memory and agrees on the result
// with the other ranks.
#pragma once

#include <cstdint>

namespace dynamiccl::zero {

// The memory of one rank between two steps, in bytes.
struct MemoryState {
  // The most that the tensors of this rank may take (--memory-cap).
  int64_t cap = 0;
  // The part of the cap that other users of the device occupy (--memory-taken).
  int64_t taken = 0;
  // Bytes of tensors that stay between steps: parameters, optimizer states, buffers.
  int64_t held = 0;

  // The bytes that a step may add; never negative.
  int64_t Free() const { return cap > taken + held ? cap - taken - held : 0; }
};

// Predicts the memory of a step from the latest measured step, in proportion to its rows. StepBatch owns one
// on each rank and calls it from the training thread. It cannot fail: when nothing fits it answers 1 row, and
// the allocator reports if even that does not fit.
//
// Example: a step of 4 rows added 8 MiB, so a row costs 2 MiB. With 20 MiB free, 18 MiB are usable, and
// Rows() answers 8.
class AutoBatch {
 public:
  // `most` is the largest number of rows that Rows() may answer; at least 1.
  explicit AutoBatch(int64_t most) : most_(most) {}

  // Records a measured step. Its `rows` rows raised the memory of this rank by `bytes` at the peak, compared
  // with the memory before the step. Only the latest step counts.
  void Learn(int64_t rows, int64_t bytes);
  // The number of rows of this rank's next step. It is a power of two, so that small changes of memory do not
  // change the batch. It is 1 before the first Learn() and where not even 1 row fits. It is at most twice the
  // learned rows, since a larger batch may take more than its proportional share.
  int64_t Rows(const MemoryState& state) const;

 private:
  int64_t most_;
  // Rows of the latest step; 0 before the first.
  int64_t learned_rows_ = 0;
  // Bytes that one row of the latest step added at its peak.
  double bytes_of_row_ = 0.0;
};

}  // namespace dynamiccl::zero
