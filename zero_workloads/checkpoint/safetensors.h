// SPDX-License-Identifier: Apache-2.0
// Weights in the safetensors format (github.com/huggingface/safetensors): 8 bytes of header length, a JSON
// header with type, shape and offsets of each tensor, then the numbers. The functions export a checkpoint's
// weights to such a file and import them from one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/base/unique_fd.h"
#include "zero_workloads/checkpoint/checkpoint_folder.h"
#include "zero_workloads/checkpoint/checkpoint_reader.h"

namespace dynamiccl::zero {

// One tensor of a file, as the header describes it.
struct SafetensorsEntry {
  std::string name;
  // "F32", "BF16", ... as in the header.
  std::string type;
  std::vector<int64_t> shape;
  // The tensor's bytes [begin, end), counted from the end of the header.
  uint64_t begin = 0, end = 0;

  int64_t Elements() const;
};

// An open file, readable by one thread at a time.
class SafetensorsFile {
 public:
  // Checks the header against the format and the file's length. The error is kNotFound if the file cannot be
  // opened, and kCorrupt, with the cause, if the header is wrong.
  static Result<SafetensorsFile> Open(const std::string& path);
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }
  // Returns kUnsupported if a tensor to be imported has a type that Read cannot convert.
  Status CheckTypes() const;
  // Reads output.size() elements from element `first` on and converts them to fp32. Known types are F64, F32,
  // F16 and BF16.
  Status Read(const SafetensorsEntry& entry, int64_t first, std::span<float> output) const;

 private:
  SafetensorsFile(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  Status ReadBytes(uint64_t offset, std::span<std::byte> output) const;
  Status ReadHeader(uint64_t file_bytes);

  std::string path_;
  UniqueFd fd_;
  // Offset of the numbers in bytes from the start of the file.
  uint64_t data_offset_ = 0;
  std::vector<SafetensorsEntry> entries_;
};

// The user's choices for an export.
struct ExportSettings {
  // True: numbers are written as bf16, rounded to nearest even. False: numbers are written as fp32.
  bool bf16 = false;
  // If true, the moments are exported as well, under the names "first_moment.NAME" and "second_moment.NAME".
  bool optimizer_state = false;
};

// Writes the checkpoint's tensors in the order of their names, with one piece in memory at a time. The same
// model gives the same bytes, whichever ranks wrote the checkpoint. The file appears whole or not at all.
Status ExportSafetensors(CheckpointReader* checkpoint, const std::string& path,
                         const ExportSettings& settings);

// Writes a checkpoint of step 0 into the folder, with fp32 weights only; moments in the file are ignored. A
// folder that already has checkpoints is an error. Returns the number of tensors.
Result<size_t> ImportSafetensors(const SafetensorsFile& file, const std::string& name,
                                 CheckpointFolder* folder);

}  // namespace dynamiccl::zero
