// SPDX-License-Identifier: Apache-2.0
// A read proceeds in runs of elements that are contiguous both in the requested slice and in a stored range.
#include "zero_workloads/checkpoint/checkpoint_reader.h"

#include "zero_workloads/checkpoint/checkpoint_folder.h"
#include "zero_workloads/checkpoint/part_writer.h"

namespace dynamiccl::zero {
namespace {

// Maximum number of open files, each with a block of 256 KiB: 4 MiB in total. Reading a tensor that is sliced
// along its second dimension alternates row by row among the files of the tensor-parallel ranks.
constexpr size_t kMaxOpenFiles = 16;

}  // namespace

Result<CheckpointReader> CheckpointReader::Open(const std::string& folder) {
  const std::string path = folder + "/" + kIndexFile;
  DYNAMICCL_TRY(CheckpointIndex index, ReadIndex(path));
  const Status complete = CheckComplete(index);
  if (!complete) return Wrap(complete.error(), path);
  const auto step = index.IntegerValue("step");
  if (!step) return MakeError(ErrorKind::kCorrupt, "{}: {}", path, step.error().message);
  return CheckpointReader(folder, std::make_unique<CheckpointIndex>(std::move(index)), *step);
}

CheckpointReader::CheckpointReader(std::string folder, std::unique_ptr<CheckpointIndex> index, int64_t step)
    : folder_(std::move(folder)), index_(std::move(index)), step_(step) {
  for (const StoredRange& range : index_->ranges) ranges_[{range.tensor, range.state}].push_back(&range);
}

uint64_t CheckpointReader::Bytes() const {
  uint64_t bytes = 0;
  for (const CheckpointFile& file : index_->files) bytes += file.bytes;
  return bytes;
}

const StoredRange* CheckpointReader::Find(int64_t tensor, int64_t state, int64_t element) const {
  const auto found = ranges_.find({tensor, state});
  if (found == ranges_.end()) return nullptr;
  for (const StoredRange* range : found->second) {
    const auto local = range->slice.LocalIndex(element);
    if (local && *local >= range->begin && *local < range->end) return range;
  }
  return nullptr;
}

Result<DataFileReader*> CheckpointReader::File(uint32_t number) {
  const auto known = open_.find(number);
  if (known != open_.end()) return &known->second;
  if (open_.size() >= kMaxOpenFiles) open_.clear();
  DYNAMICCL_TRY(DataFileReader file,
                DataFileReader::Open(folder_, index_->files[number], static_cast<uint64_t>(step_)));
  return &open_.emplace(number, std::move(file)).first->second;
}

Status CheckpointReader::Read(int64_t tensor, int64_t state, const TensorSlice& slice, int64_t begin,
                              int64_t end, float* output) {
  for (int64_t i = begin; i < end;) {
    const int64_t element = slice.GlobalIndex(i);
    const StoredRange* range = Find(tensor, state, element);
    if (range == nullptr) {
      return MakeError(ErrorKind::kCorrupt, "{}: element {} of {} is in no file", folder_, element,
                       index_->tensors[static_cast<size_t>(tensor)].name);
    }
    const int64_t local = *range->slice.LocalIndex(element);
    const int64_t count = std::min(slice.Contiguous(i, end), range->slice.Contiguous(local, range->end));
    DYNAMICCL_TRY(DataFileReader * file, File(range->file));
    const uint64_t offset = range->offset + static_cast<uint64_t>(local - range->begin) * sizeof(float);
    DYNAMICCL_CHECK_OK(
        file->Read(offset, std::as_writable_bytes(std::span(output, static_cast<size_t>(count)))));
    output += count;
    i += count;
  }
  return {};
}

Status CheckpointReader::Verify() {
  for (uint32_t number = 0; number < index_->files.size(); ++number) {
    DYNAMICCL_TRY(DataFileReader * file, File(number));
    DYNAMICCL_CHECK_OK(file->Verify());
  }
  return {};
}

}  // namespace dynamiccl::zero
