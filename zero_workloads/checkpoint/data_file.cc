// SPDX-License-Identifier: Apache-2.0
// Blocks are hashed as they are written and verified as they are read. Short reads and writes and EINTR are
// retried.
#include "zero_workloads/checkpoint/data_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "src/base/byte_codec.h"
#include "src/base/fail_point.h"

namespace dynamiccl::zero {
namespace {

// The letters "DCKDATA1" in little-endian order; the digit is the version.
constexpr uint64_t kMagic = 0x3141544144'4b4344;

tl::unexpected<Error> CannotWrite(const std::string& path, int code) {
  return WithHint(MakeError(ErrorKind::kUnavailable, "{}: {}", path, ErrnoText(code)),
                  "earlier checkpoints are as they were; free space or name another --checkpoint-dir, then "
                  "continue with --resume");
}

tl::unexpected<Error> CannotRead(const std::string& path, uint64_t offset, int code) {
  return CannotReadCheckpoint(fmt::format("{}: offset {}", path, offset), ErrnoText(code));
}

std::vector<std::byte> Encode(const DataFileHeader& header) {
  ByteWriter writer;
  writer.Put(kMagic);
  writer.Put(header.step);
  writer.Put(header.rank);
  writer.Put(header.world);
  writer.AlignTo(kDataFileHeaderBytes);
  return std::move(writer.buffer());
}

}  // namespace

Result<DataFileWriter> DataFileWriter::Create(const std::string& folder, const std::string& name,
                                              const DataFileHeader& header) {
  const std::string path = folder + "/" + name;
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!fd.valid()) return CannotWrite(path, errno);
  DataFileWriter writer(path, name, std::move(fd));
  DYNAMICCL_CHECK_OK(writer.Append(Encode(header)));
  return writer;
}

DataFileWriter::DataFileWriter(std::string path, std::string name, UniqueFd fd)
    : path_(std::move(path)), fd_(std::move(fd)), file_{std::move(name), 0, {}} {
  block_.reserve(kCheckpointBlockBytes);
}

Status DataFileWriter::Append(std::span<const std::byte> bytes) {
  file_.bytes += bytes.size();
  while (!bytes.empty()) {
    const size_t take = std::min(bytes.size(), kCheckpointBlockBytes - block_.size());
    block_.insert(block_.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(take));
    bytes = bytes.subspan(take);
    if (block_.size() == kCheckpointBlockBytes) DYNAMICCL_CHECK_OK(WriteBlock());
  }
  return {};
}

Status DataFileWriter::WriteBlock() {
  PassFailPoint(FailPoint::kCheckpointBlock);
  file_.block_hashes.push_back(XXH3_64bits(block_.data(), block_.size()));
  for (size_t done = 0; done < block_.size();) {
    const ssize_t written = ::write(fd_.get(), block_.data() + done, block_.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return CannotWrite(path_, errno);
    done += static_cast<size_t>(written);
  }
  block_.clear();
  return {};
}

Result<CheckpointFile> DataFileWriter::Finish() {
  if (!block_.empty()) DYNAMICCL_CHECK_OK(WriteBlock());
  PassFailPoint(FailPoint::kCheckpointWritten);
  if (::fsync(fd_.get()) != 0) return CannotWrite(path_, errno);
  return std::move(file_);
}

Result<DataFileReader> DataFileReader::Open(const std::string& folder, const CheckpointFile& file,
                                            uint64_t step) {
  const std::string path = folder + "/" + file.name;
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat info {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0) {
    if (errno == ENOENT) return MakeError(ErrorKind::kCorrupt, "{}: {}", path, ErrnoText(errno));
    return CannotReadCheckpoint(path, ErrnoText(errno));
  }
  if (!S_ISREG(info.st_mode)) return CannotReadCheckpoint(path, "not a regular file");
  if (static_cast<uint64_t>(info.st_size) != file.bytes) {
    return MakeError(ErrorKind::kCorrupt,
                     "{}: offset {}: ends here, the index says at {}: truncated or of "
                     "another save",
                     path, info.st_size, file.bytes);
  }
  std::byte head[kDataFileHeaderBytes] = {};
  const ssize_t got = ::pread(fd.get(), head, sizeof(head), 0);
  if (got < 0) return CannotRead(path, 0, errno);
  if (got != static_cast<ssize_t>(sizeof(head))) {
    return MakeError(ErrorKind::kCorrupt, "{}: offset 0: no header", path);
  }
  ByteReader reader(head);
  if (reader.Get<uint64_t>() != kMagic) {
    return MakeError(ErrorKind::kCorrupt, "{}: offset 0: not a data file of a checkpoint", path);
  }
  const auto of_step = reader.Get<uint64_t>();
  if (of_step != step) {
    return MakeError(ErrorKind::kCorrupt, "{}: offset 8: the file is of step {}, the index of step {}", path,
                     of_step, step);
  }
  return DataFileReader(path, std::move(fd), &file);
}

DataFileReader::DataFileReader(std::string path, UniqueFd fd, const CheckpointFile* file)
    : path_(std::move(path)), fd_(std::move(fd)), file_(file), loaded_(file->block_hashes.size()) {}

Status DataFileReader::LoadBlock(uint64_t block) {
  if (block == loaded_) return {};
  loaded_ = blocks();
  const uint64_t begin = block * kCheckpointBlockBytes;
  block_.resize(std::min(kCheckpointBlockBytes, file_->bytes - begin));
  for (size_t done = 0; done < block_.size();) {
    const ssize_t got =
        ::pread(fd_.get(), block_.data() + done, block_.size() - done, static_cast<off_t>(begin + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return CannotRead(path_, begin + done, errno);
    if (got == 0) {
      return MakeError(ErrorKind::kCorrupt, "{}: offset {}: the file ends", path_, begin + done);
    }
    done += static_cast<size_t>(got);
  }
  if (XXH3_64bits(block_.data(), block_.size()) != file_->block_hashes[block]) {
    return MakeError(ErrorKind::kCorrupt,
                     "{}: offset {}: the checksum of the {} bytes from here on is wrong: "
                     "damaged or of another save",
                     path_, begin, block_.size());
  }
  loaded_ = block;
  return {};
}

Status DataFileReader::Read(uint64_t offset, std::span<std::byte> output) {
  while (!output.empty()) {
    const uint64_t block = offset / kCheckpointBlockBytes, inside = offset % kCheckpointBlockBytes;
    if (block >= blocks())
      return MakeError(ErrorKind::kCorrupt, "{}: offset {}: past the end", path_, offset);
    DYNAMICCL_CHECK_OK(LoadBlock(block));
    const size_t take = std::min<size_t>(output.size(), block_.size() - inside);
    std::copy_n(block_.begin() + static_cast<ptrdiff_t>(inside), take, output.begin());
    output = output.subspan(take);
    offset += take;
  }
  return {};
}

Status DataFileReader::Verify() {
  for (uint64_t block = 0; block < blocks(); ++block) DYNAMICCL_CHECK_OK(LoadBlock(block));
  return {};
}

tl::unexpected<Error> CannotReadCheckpoint(const std::string& path, const std::string& reason) {
  return WithHint(MakeError(ErrorKind::kUnavailable, "{}: {}", path, reason),
                  "this is no damage: make it readable on every host and start again");
}

Status SyncFolder(const std::string& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || ::fsync(fd.get()) != 0) return CannotWrite(folder, errno);
  return {};
}

}  // namespace dynamiccl::zero
