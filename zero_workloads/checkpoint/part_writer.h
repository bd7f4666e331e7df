// SPDX-License-Identifier: Apache-2.0
// What one rank does of a save: its numbers into one data file, its part of the index beside it; and how the
// parts become the index.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "zero_workloads/checkpoint/checkpoint_index.h"
#include "zero_workloads/checkpoint/data_file.h"

namespace dynamiccl::zero {

// Elements [begin, end) of a slice of a tensor, which lie from `offset` on in each state's numbers.
struct OwnedRange {
  CheckpointTensor tensor;
  TensorSlice slice;
  int64_t begin = 0;
  int64_t end = 0;
  int64_t offset = 0;
};

struct OwnedState {
  std::string name;
  std::span<const float> numbers;
};

struct PartContent {
  DataFileHeader header;
  std::map<std::string, std::string> values;  // equal on all ranks
  std::vector<OwnedRange> ranges;
  std::vector<OwnedState> states;  // equal names on all ranks
};

// Makes the folder where it is missing. What was written is on the disk when this returns.
Status WritePart(const std::string& folder, const PartContent& content);
// Whether every rank's part is in the folder.
bool AllPartsWritten(const std::string& folder, uint32_t world);
// Puts the index of all parts into the folder, and removes the parts. kCorrupt where they do not make up
// every tensor.
Status WriteIndexOfParts(const std::string& folder, uint32_t world);
// Writes `index` as the folder's.
Status WriteIndex(const std::string& folder, const CheckpointIndex& index);
// Errors name the file: kCorrupt where it is missing or damaged, other kinds where it cannot be read.
Result<CheckpointIndex> ReadIndex(const std::string& path);

}  // namespace dynamiccl::zero
