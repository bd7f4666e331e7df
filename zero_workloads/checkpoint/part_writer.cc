// SPDX-License-Identifier: Apache-2.0
// A part consists of rank-NNNNN.data with the numbers, state by state and range by range, and rank-NNNNN.part
// with their index. The second file is written last, so its existence means that the rank is done.
#include "zero_workloads/checkpoint/part_writer.h"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "src/base/fail_point.h"
#include "src/base/unique_fd.h"
#include "src/base/whole_file.h"
#include "zero_workloads/checkpoint/checkpoint_folder.h"

namespace dynamiccl::zero {
namespace fs = std::filesystem;
namespace {

std::string PartPath(const std::string& folder, uint32_t rank) {
  return fmt::format("{}/rank-{:05}.part", folder, rank);
}

// Builds the rank's index: where each range of each state lies in the data file. The caller adds the data
// file itself.
CheckpointIndex Describe(const PartContent& content) {
  CheckpointIndex part;
  part.values = content.values;
  uint64_t offset = kDataFileHeaderBytes;
  std::map<std::string, uint32_t> numbers;
  for (uint32_t state = 0; state < content.states.size(); ++state) {
    part.states.push_back(content.states[state].name);
    for (const OwnedRange& range : content.ranges) {
      const auto [tensor, is_new] = numbers.try_emplace(range.tensor.name, part.tensors.size());
      if (is_new) part.tensors.push_back(range.tensor);
      part.ranges.push_back({tensor->second, state, 0, offset, range.slice, range.begin, range.end});
      offset += static_cast<uint64_t>(range.end - range.begin) * sizeof(float);
    }
  }
  return part;
}

Result<CheckpointFile> WriteData(const std::string& folder, const PartContent& content) {
  const std::string name = fmt::format("rank-{:05}.data", content.header.rank);
  DYNAMICCL_TRY(DataFileWriter file, DataFileWriter::Create(folder, name, content.header));
  for (const OwnedState& state : content.states) {
    for (const OwnedRange& range : content.ranges) {
      const auto numbers = state.numbers.subspan(static_cast<size_t>(range.offset),
                                                 static_cast<size_t>(range.end - range.begin));
      DYNAMICCL_CHECK_OK(file.Append(std::as_bytes(numbers)));
    }
  }
  return file.Finish();
}

}  // namespace

Status WritePart(const std::string& folder, const PartContent& content) {
  PassFailPoint(FailPoint::kCheckpointBegin);
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) return MakeError(ErrorKind::kUnavailable, "{}: {}", folder, failure.message());
  DYNAMICCL_TRY(const CheckpointFile file, WriteData(folder, content));
  CheckpointIndex part = Describe(content);
  part.files.push_back(file);
  PassFailPoint(FailPoint::kCheckpointPart);
  return WriteWholeFile(PartPath(folder, content.header.rank), EncodeIndex(part));
}

bool AllPartsWritten(const std::string& folder, uint32_t world) {
  // Once a file was not found, a network file system may keep reporting it as missing until the folder is
  // opened again.
  const UniqueFd fresh(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (uint32_t rank = 0; rank < world; ++rank) {
    std::error_code failure;
    if (!fs::exists(PartPath(folder, rank), failure)) return false;
  }
  return true;
}

Status WriteIndexOfParts(const std::string& folder, uint32_t world) {
  std::vector<CheckpointIndex> parts;
  for (uint32_t rank = 0; rank < world; ++rank) {
    DYNAMICCL_TRY(CheckpointIndex part, ReadIndex(PartPath(folder, rank)));
    parts.push_back(std::move(part));
  }
  DYNAMICCL_TRY(const CheckpointIndex index, MergeParts(parts));
  PassFailPoint(FailPoint::kCheckpointMerged);
  DYNAMICCL_CHECK_OK(WriteIndex(folder, index));
  PassFailPoint(FailPoint::kCheckpointIndex);
  for (uint32_t rank = 0; rank < world; ++rank) {
    std::error_code failure;
    fs::remove(PartPath(folder, rank), failure);
  }
  return {};
}

Status WriteIndex(const std::string& folder, const CheckpointIndex& index) {
  DYNAMICCL_CHECK_OK(CheckComplete(index));
  return WriteWholeFile(folder + "/" + kIndexFile, EncodeIndex(index));
}

Result<CheckpointIndex> ReadIndex(const std::string& path) {
  std::error_code failure;
  const uint64_t bytes = fs::file_size(path, failure);
  if (failure == std::errc::no_such_file_or_directory) {
    return MakeError(ErrorKind::kCorrupt, "{}: {}", path, failure.message());
  }
  if (failure) return CannotReadCheckpoint(path, failure.message());
  DYNAMICCL_TRY(const WholeFile file, ReadWholeFile(path, bytes));
  auto index = DecodeIndex(file.bytes);
  if (!index) return Wrap(index.error(), path);
  return index;
}

}  // namespace dynamiccl::zero
