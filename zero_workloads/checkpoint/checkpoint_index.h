// SPDX-License-Identifier: Apache-2.0
// The index of a checkpoint (docs/formats/checkpoint.md): it says which bytes of which file hold which
// elements of which named tensor. It also holds values that exist once for the whole run. A rank's part of
// the index has the same form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "zero_workloads/checkpoint/tensor_slice.h"

namespace dynamiccl::zero {

// Number of bytes that one checksum covers. A rank must read whole blocks, so blocks are small enough for a
// rank that loads only a few elements. The checksum of a block takes 8 bytes in the index.
inline constexpr uint64_t kCheckpointBlockBytes = 256 << 10;

// A named tensor of the model.
struct CheckpointTensor {
  std::string name;
  // The shape of the whole tensor, however its elements are distributed.
  std::vector<int64_t> shape;

  int64_t Elements() const;
  bool operator==(const CheckpointTensor&) const = default;
};

// A data file, which one rank wrote (data_file.h).
struct CheckpointFile {
  // File name without a slash, relative to the checkpoint's folder.
  std::string name;
  uint64_t bytes = 0;
  // The XXH3 hash of each block of kCheckpointBlockBytes. The last block may be shorter.
  std::vector<uint64_t> block_hashes;
};

// Elements [begin, end) of a slice of a tensor, stored one after another as fp32. `tensor`, `state` and
// `file` are indices into the lists of CheckpointIndex.
struct StoredRange {
  uint32_t tensor = 0;
  uint32_t state = 0;
  uint32_t file = 0;
  // Offset of the elements in bytes from the start of the file.
  uint64_t offset = 0;
  TensorSlice slice;
  int64_t begin = 0;
  int64_t end = 0;
};

// A decoded index. DecodeIndex guarantees that numbers and ranges are within bounds. CheckComplete checks
// that no element is missing.
struct CheckpointIndex {
  // Values that exist once for the run: step, settings, loss scale, ...
  std::map<std::string, std::string> values;
  // Names of the states, for example master and first_moment. Every tensor exists in every state.
  std::vector<std::string> states;
  std::vector<CheckpointTensor> tensors;
  std::vector<CheckpointFile> files;
  std::vector<StoredRange> ranges;

  // Returns kNotFound, with the name, if there is no such value. Returns kCorrupt if the value is not a whole
  // number.
  Result<int64_t> IntegerValue(const std::string& name) const;
  // Index of the state; -1 if there is none.
  int64_t StateNumber(const std::string& name) const;
  // Index of the tensor; -1 if there is none.
  int64_t TensorNumber(const std::string& name) const;
};

// The index as bytes: magic number, version, length, content, and a checksum over everything before it.
std::vector<std::byte> EncodeIndex(const CheckpointIndex& index);
// Decodes an index. If the bytes are not an index, are of another version, truncated or changed anywhere, the
// error is kCorrupt and names the offset.
Result<CheckpointIndex> DecodeIndex(std::span<const std::byte> bytes);

// Merges the parts of all ranks into one index. If parts disagree about a tensor's shape or about a value,
// the error is kInternal.
Result<CheckpointIndex> MergeParts(const std::vector<CheckpointIndex>& parts);
// Returns kCorrupt, with the tensor's name, unless every element of every tensor is stored exactly once in
// every state.
Status CheckComplete(const CheckpointIndex& index);

}  // namespace dynamiccl::zero
