// SPDX-License-Identifier: Apache-2.0
// Predicts the memory of a step: its number of rows times the bytes that one row of the latest step took.
// Chooses the largest power of two for which the prediction fits into the usable free memory.
#include "zero_workloads/memory/auto_batch.h"

#include <algorithm>

namespace dynamiccl::zero {
namespace {

// Share of the free memory that a step is planned to fill. The rest covers what allocators lose by rounding
// sizes up and by holes between blocks.
constexpr double kUsable = 0.9;

}  // namespace

void AutoBatch::Learn(int64_t rows, int64_t bytes) {
  learned_rows_ = rows;
  bytes_of_row_ = static_cast<double>(bytes) / static_cast<double>(rows);
}

int64_t AutoBatch::Rows(const MemoryState& state) const {
  const double usable = kUsable * static_cast<double>(state.Free());
  const int64_t most = std::min(most_, 2 * learned_rows_);
  int64_t rows = 1;
  while (2 * rows <= most && bytes_of_row_ * static_cast<double>(2 * rows) <= usable) rows *= 2;
  return rows;
}

}  // namespace dynamiccl::zero
