// SPDX-License-Identifier: Apache-2.0
// Reads any elements of any tensor of a checkpoint, whichever rank wrote them. A run may therefore resume at
// another world size, stage or tensor-parallel degree.
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

// An open checkpoint, used by one thread. If a file is damaged, the error is kCorrupt and names file and
// offset. If a file cannot be read, the error is kUnavailable. The reader keeps one block of each of a few
// files in memory.
class CheckpointReader {
 public:
  // Reads and checks `folder`/index. The data files are opened when they are needed.
  static Result<CheckpointReader> Open(const std::string& folder);
  const CheckpointIndex& index() const { return *index_; }
  int64_t step() const { return step_; }
  // Total size of all data files in bytes.
  uint64_t Bytes() const;

  // Writes elements [begin, end) of a slice of the tensor to `output` as fp32. `tensor` and `state` are
  // positions in the lists of the index.
  Status Read(int64_t tensor, int64_t state, const TensorSlice& slice, int64_t begin, int64_t end,
              float* output);
  // Reads every file whole and checks every block.
  Status Verify();

 private:
  CheckpointReader(std::string folder, std::unique_ptr<CheckpointIndex> index, int64_t step);
  // The stored range that contains this element of the whole tensor; null only if the index is not complete.
  const StoredRange* Find(int64_t tensor, int64_t state, int64_t element) const;
  // Returns the open file with this number. It stays valid until the next call of File().
  Result<DataFileReader*> File(uint32_t number);

  std::string folder_;
  // Open files and ranges point into the index, so the index must have a stable address.
  std::unique_ptr<CheckpointIndex> index_;
  int64_t step_;
  // The stored ranges of each pair of tensor and state.
  std::map<std::pair<int64_t, int64_t>, std::vector<const StoredRange*>> ranges_;
  std::map<uint32_t, DataFileReader> open_;
};

}  // namespace dynamiccl::zero
