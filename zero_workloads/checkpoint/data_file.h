// SPDX-License-Identifier: Apache-2.0
// A data file of a checkpoint: a header that identifies its save, followed by fp32 numbers. The checksums of
// its blocks are in the index.
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

// Identifies the save, so that a file of another step can be distinguished from a damaged one.
struct DataFileHeader {
  uint64_t step = 0;
  uint32_t rank = 0;
  uint32_t world = 0;
};
// The encoded header: a magic number of 8 bytes, step, rank and world, and zeros up to this length.
inline constexpr uint64_t kDataFileHeaderBytes = 32;

// Writes one file in blocks of kCheckpointBlockBytes, on one thread. Errors name the file. After an error the
// written bytes stay until the folder's owner removes them.
class DataFileWriter {
 public:
  // Creates or truncates `folder`/`name` and writes the header.
  static Result<DataFileWriter> Create(const std::string& folder, const std::string& name,
                                       const DataFileHeader& header);
  Status Append(std::span<const std::byte> bytes);
  // Number of bytes that were written, which is the offset of the next bytes.
  uint64_t bytes() const { return file_.bytes; }
  // Syncs the file to the disk and returns its description for the index. The writer cannot be used
  // afterwards.
  Result<CheckpointFile> Finish();

 private:
  DataFileWriter(std::string path, std::string name, UniqueFd fd);
  Status WriteBlock();

  std::string path_;
  UniqueFd fd_;
  CheckpointFile file_;
  // The bytes of the last block, which is not full yet.
  std::vector<std::byte> block_;
};

// Reads any bytes of a data file by whole blocks, on one thread. A block is checked when it is loaded.
// Consecutive reads from one block load it once.
class DataFileReader {
 public:
  // Returns kCorrupt if the file is missing, too short, too long, or of another step than `step`. Returns
  // kUnavailable if the file exists and cannot be read. `file` must outlive the reader.
  static Result<DataFileReader> Open(const std::string& folder, const CheckpointFile& file, uint64_t step);
  Status Read(uint64_t offset, std::span<std::byte> output);
  // Reads and checks all blocks.
  Status Verify();

 private:
  DataFileReader(std::string path, UniqueFd fd, const CheckpointFile* file);
  Status LoadBlock(uint64_t block);
  uint64_t blocks() const { return file_->block_hashes.size(); }

  std::string path_;
  UniqueFd fd_;
  const CheckpointFile* file_;
  // Number of the block that is in memory. The value blocks() means that no block is in memory.
  uint64_t loaded_;
  std::vector<std::byte> block_;
};

// Returns the error (kUnavailable) for a file that exists and cannot be read. With this error a resume stops,
// and does not try an older checkpoint.
tl::unexpected<Error> CannotReadCheckpoint(const std::string& path, const std::string& reason);

// Syncs a folder's entries to the disk, so that a created or renamed file is still there after a crash.
Status SyncFolder(const std::string& folder);

}  // namespace dynamiccl::zero
