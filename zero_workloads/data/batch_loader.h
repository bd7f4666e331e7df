// SPDX-License-Identifier: Apache-2.0
// Which bytes of the text are in a batch, and which rows of it this rank computes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

namespace dynamiccl::zero {

// int64 [rows, sequence]: targets are the bytes that follow the tokens.
struct Batch {
  at::Tensor tokens;
  at::Tensor targets;
};

struct BatchShape {
  int64_t global_batch = 8;  // rows over all ranks
  int64_t sequence = 128;
  int rank = 0;
  int world = 1;  // divides global_batch
};

// Row `i` of batch `n` starts at a position drawn from the seed and the row's number n x global_batch + i
// alone: a batch is the same at any world size, two batches in a row are one of twice the size, and a run
// continued at batch n sees what the uninterrupted run saw. The text outlives the
// loader.
class BatchLoader {
 public:
  BatchLoader(std::span<const uint8_t> text, const BatchShape& shape, uint64_t seed, at::Device device);
  Batch TrainingBatch(int64_t number) const;
  // This rank's part of the batch of `global_rows` rows, divisible by the world, from row `first` on.
  Batch Samples(int64_t first, int64_t global_rows) const;

 private:
  std::span<const uint8_t> text_;
  BatchShape shape_;
  uint64_t seed_;
  at::Device device_;
};

// `rows` windows of `sequence` targets each, without overlap, from window `first` on; the text's end cuts
// what lies past it. Targets past the end are -100, which cross entropy ignores.
Batch ConsecutiveBatch(std::span<const uint8_t> text, int64_t sequence, int64_t first, int64_t rows,
                       at::Device device);

}  // namespace dynamiccl::zero
