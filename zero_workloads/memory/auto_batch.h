// SPDX-License-Identifier: Apache-2.0
// How many sequences a rank computes at once so that it uses the memory that is free and no more.
// Book-keeping alone: who calls it measures, and agrees with the other ranks.
#pragma once

#include <cstdint>

namespace dynamiccl::zero {

// Bytes of one rank, between two steps.
struct MemoryState {
  int64_t cap = 0;    // what this rank may take
  int64_t taken = 0;  // of the cap, by others
  int64_t held = 0;   // by tensors that stay

  // What a step may add.
  int64_t Free() const { return cap > taken + held ? cap - taken - held : 0; }
};

class AutoBatch {
 public:
  // `most`: rows of a rank, at least 1.
  explicit AutoBatch(int64_t most) : most_(most) {}

  // A step of so many rows of this rank's took so many bytes at its peak beyond what was held before it.
  void Learn(int64_t rows, int64_t bytes);
  // Powers of two, so that small changes of memory change nothing. 1 before anything was learned and where
  // not even 1 fits; at most twice what was learned, since the next may take more than in proportion.
  int64_t Rows(const MemoryState& state) const;

 private:
  int64_t most_;
  int64_t learned_rows_ = 0;
  double bytes_of_row_ = 0.0;  // the latest step's
};

}  // namespace dynamiccl::zero
