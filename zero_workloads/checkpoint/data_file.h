// SPDX-License-Identifier: Apache-2.0
// A data file of a checkpoint: a header that says which save it belongs to, then numbers; checksums of its
// blocks are in the index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/base/unique_fd.h"
#include "zero_workloads/checkpoint/checkpoint_index.h"

namespace dynamiccl::zero {

// Which save a data file belongs to, so that a file of another step is told apart from a damaged one.
struct DataFileHeader {
  uint64_t step = 0;
  uint32_t rank = 0;
  uint32_t world = 0;
};
inline constexpr uint64_t kDataFileHeaderBytes = 32;

// Errors name the file; what was written stays, for whoever owns the folder to remove.
class DataFileWriter {
 public:
  static Result<DataFileWriter> Create(const std::string& folder, const std::string& name,
                                       const DataFileHeader& header);
  Status Append(std::span<const std::byte> bytes);
  // Bytes so far: the offset of what is appended next.
  uint64_t bytes() const { return file_.bytes; }
  // Everything is on the disk when this returns.
  Result<CheckpointFile> Finish();

 private:
  DataFileWriter(std::string path, std::string name, UniqueFd fd);
  Status WriteBlock();

  std::string path_;
  UniqueFd fd_;
  CheckpointFile file_;
  std::vector<std::byte> block_;
};

// Reads any bytes of a data file by whole blocks, each checked once in a row of reads from it.
class DataFileReader {
 public:
  // kCorrupt where the file is missing, too short or too long, or of another step than `step`; kUnavailable
  // where it is there and cannot be read. `file` outlives the reader.
  static Result<DataFileReader> Open(const std::string& folder, const CheckpointFile& file, uint64_t step);
  Status Read(uint64_t offset, std::span<std::byte> output);
  // Reads everything.
  Status Verify();

 private:
  DataFileReader(std::string path, UniqueFd fd, const CheckpointFile* file);
  Status LoadBlock(uint64_t block);
  uint64_t blocks() const { return file_->block_hashes.size(); }

  std::string path_;
  UniqueFd fd_;
  const CheckpointFile* file_;
  uint64_t loaded_;  // blocks(): none
  std::vector<std::byte> block_;
};

// What is there and cannot be read: kUnavailable, which no older checkpoint makes up for.
tl::unexpected<Error> CannotReadCheckpoint(const std::string& path, const std::string& reason);

// A folder's or file's directory entry is on the disk when this returns.
Status SyncFolder(const std::string& folder);

}  // namespace dynamiccl::zero
