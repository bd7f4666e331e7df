// SPDX-License-Identifier: Apache-2.0
// Selects the bytes of the text that make up a batch, and the batch's rows that this rank computes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

namespace dynamiccl::zero {

// Token numbers and their targets: int64 [rows, sequence] on the loader's device. Each target is the byte
// that follows its token in the text.
struct Batch {
  at::Tensor tokens;
  at::Tensor targets;
};

// The shape of a training batch, and this rank's place among the ranks that share the batch.
struct BatchShape {
  // Number of rows over all ranks.
  int64_t global_batch = 8;
  int64_t sequence = 128;
  int rank = 0;
  // Number of ranks that share a batch. It divides global_batch.
  int world = 1;
};

// Draws training samples. Row i of batch n starts at a position of the text that depends only on the seed and
// on the row's number n * global_batch + i. A batch is therefore the same at any world size. Two consecutive
// batches equal one of twice the size. A run that resumes at batch n sees what the uninterrupted run would
// have seen.
//
// The training loop of each rank owns a loader. It has no state between calls, and the text must outlive it.
// The text must be longer than a sequence.
class BatchLoader {
 public:
  BatchLoader(std::span<const uint8_t> text, const BatchShape& shape, uint64_t seed, at::Device device);
  // This rank's rows of batch `number`, which counts from 0.
  Batch TrainingBatch(int64_t number) const;
  // This rank's part of the `global_rows` rows from row `first` on; `global_rows` must be a multiple of the
  // world size.
  Batch Samples(int64_t first, int64_t global_rows) const;

 private:
  std::span<const uint8_t> text_;
  BatchShape shape_;
  uint64_t seed_;
  at::Device device_;
};

// Returns `rows` windows of `sequence` tokens, without overlap, from window `first` on; evaluation reads a
// text in this way. After the end of the text tokens are 0 and targets -100, which cross entropy ignores.
Batch ConsecutiveBatch(std::span<const uint8_t> text, int64_t sequence, int64_t first, int64_t rows,
                       at::Device device);

}  // namespace dynamiccl::zero
