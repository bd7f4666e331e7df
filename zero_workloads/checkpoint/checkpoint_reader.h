// SPDX-License-Identifier: Apache-2.0
// Reads any elements of any tensor of a checkpoint, whoever wrote which part of it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/base/status.h"
#include "zero_workloads/checkpoint/checkpoint_index.h"
#include "zero_workloads/checkpoint/data_file.h"

namespace dynamiccl::zero {

// What is damaged is kCorrupt and names file and offset; what cannot be read is kUnavailable. Keeps one block
// of each of a few files in memory.
class CheckpointReader {
 public:
  // The checkpoint in this folder: `folder`/index and the files that it names.
  static Result<CheckpointReader> Open(const std::string& folder);
  const CheckpointIndex& index() const { return *index_; }
  int64_t step() const { return step_; }
  uint64_t Bytes() const;

  // Elements [begin, end) of a slice of the tensor.
  Status Read(int64_t tensor, int64_t state, const TensorSlice& slice, int64_t begin, int64_t end,
              float* output);
  // Reads every file whole.
  Status Verify();

 private:
  CheckpointReader(std::string folder, std::unique_ptr<CheckpointIndex> index, int64_t step);
  // The range that has the element; none in an index that is not complete.
  const StoredRange* Find(int64_t tensor, int64_t state, int64_t element) const;
  Result<DataFileReader*> File(uint32_t number);

  std::string folder_;
  std::unique_ptr<CheckpointIndex> index_;  // open files point into it
  int64_t step_;
  std::map<std::pair<int64_t, int64_t>, std::vector<const StoredRange*>> ranges_;  // by tensor and state
  std::map<uint32_t, DataFileReader> open_;
};

}  // namespace dynamiccl::zero
