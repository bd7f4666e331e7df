// SPDX-License-Identifier: Apache-2.0
// The formulas of sections 3.2 and 6 of the ZeRO paper.
#include "zero_workloads/estimate/residual_memory.h"

#include <cmath>

namespace dynamiccl::zero {
namespace {

// Number of elements in a block's input.
double BlockInput(const TransformerShape& shape, int64_t batch) {
  return static_cast<double>(shape.hidden) * static_cast<double>(batch) * static_cast<double>(shape.sequence);
}

}  // namespace

double ParametersOf(const TransformerShape& shape) {
  const auto hidden = static_cast<double>(shape.hidden);
  const double block = 12 * hidden * hidden + 13 * hidden;
  const double tables =
      static_cast<double>(shape.vocabulary) * (shape.tied_head ? 1 : 2) + static_cast<double>(shape.sequence);
  return static_cast<double>(shape.layers) * block + (tables + 2) * hidden;
}

ActivationMemory ActivationsOf(const TransformerShape& shape, int64_t batch, int64_t tensor_parallel,
                               double element_bytes, Checkpoints checkpoints, double of_block) {
  const double input = BlockInput(shape, batch) * element_bytes;
  const double block = of_block * input / static_cast<double>(tensor_parallel);
  const double inputs = static_cast<double>(shape.layers) * input;
  const double partition = inputs / static_cast<double>(tensor_parallel);
  switch (checkpoints) {
    case Checkpoints::kNone:
      return {.kept = static_cast<double>(shape.layers) * block};
    case Checkpoints::kEveryBlock:
      return {.kept = inputs, .working = block};
    case Checkpoints::kPartitioned:
      return {.kept = partition, .working = block};
    case Checkpoints::kPartitionedCpu:
      return {.working = block, .on_host = partition};
  }
  return {};
}

double ActivationsWithBestCheckpoints(const TransformerShape& shape, int64_t batch, double element_bytes) {
  return ActivationsOf(shape, batch, 1, element_bytes, Checkpoints::kNone).total() /
         std::sqrt(static_cast<double>(shape.layers));
}

double FusedBuffer(double parameters) {
  return 4 * parameters;
}

}  // namespace dynamiccl::zero
