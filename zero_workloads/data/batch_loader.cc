// SPDX-License-Identifier: Apache-2.0
// Positions come from the counter-based generator Philox4x32-10, with the sample's number as the counter, so
// no state has to be kept or restored.
#include "zero_workloads/data/batch_loader.h"

#include <ATen/core/PhiloxRNGEngine.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

namespace dynamiccl::zero {
namespace {

// Philox subsequence for the order of the data. The subsequences of parameters are hashes of their names.
constexpr uint64_t kDataSubsequence = 0;
// The target that cross entropy leaves out: torch's default `ignore_index`.
constexpr int64_t kIgnoredTarget = -100;

}  // namespace

BatchLoader::BatchLoader(std::span<const uint8_t> text, const BatchShape& shape, uint64_t seed,
                         at::Device device)
    : text_(text), shape_(shape), seed_(seed), device_(device) {}

Batch BatchLoader::TrainingBatch(int64_t number) const {
  return Samples(number * shape_.global_batch, shape_.global_batch);
}

Batch BatchLoader::Samples(int64_t first, int64_t global_rows) const {
  const int64_t rows = global_rows / shape_.world;
  const uint64_t positions = text_.size() - static_cast<uint64_t>(shape_.sequence);
  at::Tensor tokens = at::empty({rows, shape_.sequence}, at::kLong), targets = at::empty_like(tokens);
  int64_t* token = tokens.data_ptr<int64_t>();
  int64_t* target = targets.data_ptr<int64_t>();
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t sample = first + shape_.rank * rows + row;
    at::Philox4_32 engine(seed_, kDataSubsequence, static_cast<uint64_t>(sample));
    const uint64_t high = engine(), low = engine();
    const uint8_t* bytes = text_.data() + ((high << 32) | low) % positions;
    for (int64_t i = 0; i < shape_.sequence; ++i) {
      *token++ = bytes[i];
      *target++ = bytes[i + 1];
    }
  }
  return {tokens.to(device_), targets.to(device_)};
}

Batch ConsecutiveBatch(std::span<const uint8_t> text, int64_t sequence, int64_t first, int64_t rows,
                       at::Device device) {
  at::Tensor tokens = at::zeros({rows, sequence}, at::kLong);
  at::Tensor targets = at::full({rows, sequence}, kIgnoredTarget, at::kLong);
  int64_t* token = tokens.data_ptr<int64_t>();
  int64_t* target = targets.data_ptr<int64_t>();
  const int64_t last = std::min<int64_t>((first + rows) * sequence, static_cast<int64_t>(text.size()) - 1);
  for (int64_t position = first * sequence; position < last; ++position) {
    *token++ = text[static_cast<size_t>(position)];
    *target++ = text[static_cast<size_t>(position) + 1];
  }
  return {tokens.to(device), targets.to(device)};
}

}  // namespace dynamiccl::zero
