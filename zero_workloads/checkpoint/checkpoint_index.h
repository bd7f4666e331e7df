// SPDX-License-Identifier: Apache-2.0
// The index of a checkpoint (docs/formats/checkpoint.md): which bytes of which file hold which elements of
// which named tensor, and the values that are there once. A rank's part of it has the same form.
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

// Bytes that one checksum stands for: small enough that a rank which loads little reads little, and 8 bytes
// of index for each are nothing.
inline constexpr uint64_t kCheckpointBlockBytes = 256 << 10;

struct CheckpointTensor {
  std::string name;
  std::vector<int64_t> shape;  // of the whole tensor, whoever holds which part of it

  int64_t Elements() const;
  bool operator==(const CheckpointTensor&) const = default;
};

struct CheckpointFile {
  std::string name;  // inside the checkpoint's folder
  uint64_t bytes = 0;
  std::vector<uint64_t> block_hashes;  // XXH3 of each kCheckpointBlockBytes
};

// fp32 elements [begin, end) of a slice of a tensor, one after another.
struct StoredRange {
  uint32_t tensor = 0;
  uint32_t state = 0;
  uint32_t file = 0;
  uint64_t offset = 0;  // bytes
  TensorSlice slice;
  int64_t begin = 0;
  int64_t end = 0;
};

struct CheckpointIndex {
  std::map<std::string, std::string> values;  // what is there once: step, settings, loss scale, ...
  std::vector<std::string> states;            // master, first_moment, ...: each has every tensor
  std::vector<CheckpointTensor> tensors;
  std::vector<CheckpointFile> files;
  std::vector<StoredRange> ranges;

  // kNotFound, and the name, where the checkpoint has no such value.
  Result<int64_t> IntegerValue(const std::string& name) const;
  int64_t StateNumber(const std::string& name) const;   // -1: none
  int64_t TensorNumber(const std::string& name) const;  // -1: none
};

std::vector<std::byte> EncodeIndex(const CheckpointIndex& index);
// What is not an index, of another version, truncated or changed in any byte is kCorrupt with the offset.
Result<CheckpointIndex> DecodeIndex(std::span<const std::byte> bytes);

// One index of all ranks' parts. Parts that disagree about a tensor's shape or a value are an error.
Result<CheckpointIndex> MergeParts(const std::vector<CheckpointIndex>& parts);
// Every element of every tensor is there once in every state; else kCorrupt, and which tensor.
Status CheckComplete(const CheckpointIndex& index);

}  // namespace dynamiccl::zero
