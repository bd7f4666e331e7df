// SPDX-License-Identifier: Apache-2.0
// Makes checkpoints of known numbers. A number depends on its tensor, its state and its index.
#pragma once

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "tests/zero_workloads/rank_processes.h"
#include "zero_workloads/checkpoint/checkpoint_folder.h"
#include "zero_workloads/checkpoint/part_writer.h"

namespace dynamiccl::zero {

inline float NumberAt(size_t tensor, size_t state, int64_t element) {
  return static_cast<float>(tensor * 1000003 + state * 10007) + static_cast<float>(element) * 0.5f;
}

// The part that one rank writes, with the numbers that its spans point to.
struct SamplePart {
  PartContent content;
  std::vector<std::vector<float>> numbers;  // by state
};

inline const std::vector<std::string> kSampleStates = {"master", "first_moment", "second_moment"};

// Returns slice number `part` of `parts` equal slices along one dimension.
inline TensorSlice SliceAlong(const std::vector<int64_t>& shape, size_t dimension, int64_t parts,
                              int64_t part) {
  int64_t inner = 1;
  for (size_t i = dimension + 1; i < shape.size(); ++i) inner *= shape[i];
  const int64_t run = shape[dimension] / parts * inner;
  return {run, shape[dimension] * inner, part * run};
}

// A tensor as a tensor-parallel rank has it.
struct SlicedTensor {
  CheckpointTensor tensor;
  TensorSlice slice;
  int64_t elements = 0;  // number of elements in the slice
};

// Returns the part of data rank `rank` of `ranks` data ranks: an equal share of the elements of each slice.
inline SamplePart MakePart(const std::vector<SlicedTensor>& tensors, const DataFileHeader& header,
                           int64_t rank, int64_t ranks) {
  SamplePart part;
  part.content.header = header;
  part.content.values = {{"step", std::to_string(header.step)}};
  part.numbers.resize(kSampleStates.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto& [tensor, slice, elements] = tensors[i];
    const int64_t begin = elements * rank / ranks, end = elements * (rank + 1) / ranks;
    if (begin == end) continue;
    part.content.ranges.push_back(
        {tensor, slice, begin, end, static_cast<int64_t>(part.numbers.front().size())});
    for (size_t state = 0; state < kSampleStates.size(); ++state) {
      for (int64_t local = begin; local < end; ++local) {
        part.numbers[state].push_back(NumberAt(i, state, slice.GlobalIndex(local)));
      }
    }
  }
  for (size_t state = 0; state < kSampleStates.size(); ++state) {
    part.content.states.push_back({kSampleStates[state], part.numbers[state]});
  }
  return part;
}

inline std::vector<CheckpointTensor> SampleTensors() {
  return {{"block.0.weight", {6, 4, 5}}, {"block.0.bias", {24}}, {"root.scalar", {1}}};
}

inline std::vector<SlicedTensor> Whole(const std::vector<CheckpointTensor>& tensors) {
  std::vector<SlicedTensor> whole;
  for (const CheckpointTensor& tensor : tensors) {
    const int64_t elements = tensor.Elements();
    whole.push_back({tensor, {elements, elements, 0}, elements});
  }
  return whole;
}

// Writes a complete checkpoint of these tensors by `ranks` ranks.
inline void WriteSample(const CheckpointFolder& folder, int64_t step, uint32_t ranks,
                        const Retention& retention = {.keep = 100},
                        const std::vector<CheckpointTensor>& tensors = SampleTensors()) {
  const std::string partial = folder.PartialPathOf(step);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const SamplePart part = MakePart(Whole(tensors), {static_cast<uint64_t>(step), rank, ranks}, rank, ranks);
    const Status written = WritePart(partial, part.content);
    ASSERT_TRUE(written) << written.error().message;
  }
  const Status index = WriteIndexOfParts(partial, ranks);
  ASSERT_TRUE(index) << index.error().message;
  const Status committed = folder.Commit(step, retention);
  ASSERT_TRUE(committed) << committed.error().message;
}

}  // namespace dynamiccl::zero
