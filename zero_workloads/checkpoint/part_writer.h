// SPDX-License-Identifier: Apache-2.0
// One rank's part of a save: the rank writes its numbers to a data file and its part of the index beside it.
// Rank 0 then merges the parts into the index.
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

// Elements [begin, end) of a slice of a tensor. In the numbers of each state, they begin at element `offset`.
struct OwnedRange {
  CheckpointTensor tensor;
  TensorSlice slice;
  int64_t begin = 0;
  int64_t end = 0;
  int64_t offset = 0;
};

// One state's numbers on this rank, in fp32.
struct OwnedState {
  std::string name;
  std::span<const float> numbers;
};

// Everything that a rank writes. The numbers belong to the caller and must not change during WritePart.
struct PartContent {
  DataFileHeader header;
  // Values that exist once for the run, such as the step. They are equal on all ranks.
  std::map<std::string, std::string> values;
  std::vector<OwnedRange> ranges;
  // The states of the optimizer. All ranks have states of the same names in the same order.
  std::vector<OwnedState> states;
};

// Creates the folder if it is missing and writes the rank's files. When the function returns, the files are
// on the disk.
Status WritePart(const std::string& folder, const PartContent& content);
// Returns true if every rank's part exists in the folder.
bool AllPartsWritten(const std::string& folder, uint32_t world);
// Writes the index of all parts to the folder and removes the parts' own indices. Returns kCorrupt if the
// parts together do not cover every tensor.
Status WriteIndexOfParts(const std::string& folder, uint32_t world);
// Checks that `index` is complete and writes it as the folder's index.
Status WriteIndex(const std::string& folder, const CheckpointIndex& index);
// Reads an index. The error is kCorrupt if the file is missing or damaged, and of another kind if the file
// cannot be read. Errors name the file.
Result<CheckpointIndex> ReadIndex(const std::string& path);

}  // namespace dynamiccl::zero
