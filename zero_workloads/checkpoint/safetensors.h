// SPDX-License-Identifier: Apache-2.0
// Weights in the safetensors format (github.com/huggingface/safetensors), out of a checkpoint and into one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/base/unique_fd.h"
#include "zero_workloads/checkpoint/checkpoint_folder.h"
#include "zero_workloads/checkpoint/checkpoint_reader.h"

namespace dynamiccl::zero {

struct SafetensorsEntry {
  std::string name;
  std::string type;  // "F32", "BF16", ...
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  // bytes after the header

  int64_t Elements() const;
};

class SafetensorsFile {
 public:
  // Checks the header against the format and the file's length; kCorrupt names what is wrong.
  static Result<SafetensorsFile> Open(const std::string& path);
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }
  // Every tensor that an import takes is of a type that Read knows.
  Status CheckTypes() const;
  // `output.size()` elements from `first` on, as fp32. Types are F64, F32, F16 and BF16.
  Status Read(const SafetensorsEntry& entry, int64_t first, std::span<float> output) const;

 private:
  SafetensorsFile(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  Status ReadBytes(uint64_t offset, std::span<std::byte> output) const;
  Status ReadHeader(uint64_t file_bytes);

  std::string path_;
  UniqueFd fd_;
  uint64_t data_offset_ = 0;
  std::vector<SafetensorsEntry> entries_;
};

struct ExportSettings {
  bool bf16 = false;             // else fp32
  bool optimizer_state = false;  // also the moments, as "first_moment.NAME" and "second_moment.NAME"
};

// Tensors in the order of their names, one piece in memory at a time: the same bytes for the same model,
// whoever wrote which part of the checkpoint. The file appears whole or not at all.
Status ExportSafetensors(CheckpointReader* checkpoint, const std::string& path,
                         const ExportSettings& settings);

// Makes the checkpoint of step 0 in the folder, with fp32 weights and nothing else. Moments in the file are
// left out. Returns how many tensors it has.
Result<size_t> ImportSafetensors(const SafetensorsFile& file, const std::string& name,
                                 CheckpointFolder* folder);

}  // namespace dynamiccl::zero
