// SPDX-License-Identifier: Apache-2.0
// One file with two descriptors: a mapping for access between steps, and an O_DIRECT descriptor for the
// transfers of a step. The kernel keeps the two coherent; a direct write drops the pages of its range from
// the cache.
#include "zero_workloads/offload/state_file.h"

#include <ATen/ops/from_blob.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <stdexcept>

namespace dynamiccl::zero {
namespace {

[[noreturn]] void Fail(const std::string& path, const char* what, int code) {
  throw std::runtime_error(fmt::format("{}: {}: {} (errno {})", path, what, ErrnoText(code), code));
}

template <typename Move>
// Transfers `bytes` with pread or pwrite. One such call may transfer fewer bytes than requested, so calls are
// repeated.
void MoveAll(const std::string& path, const char* what, int64_t bytes, const Move& move) {
  for (int64_t done = 0; done < bytes;) {
    const ssize_t moved = move(done);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) Fail(path, what, errno);
    if (moved == 0) throw std::runtime_error(fmt::format("{}: {}: the file ends too early", path, what));
    done += moved;
  }
}

}  // namespace

StateFile::StateFile(std::string path, int64_t elements)
    : path_(std::move(path)),
      bytes_(std::max<int64_t>(1, (elements + kBlockElements - 1) / kBlockElements) * kDiskBlock) {
  auto file = ClaimOwnFile(path_, O_RDWR);
  if (!file) throw std::runtime_error(file.error().message);
  if (!*file) throw std::runtime_error(fmt::format("{}: is in use by another process", path_));
  auto map = SharedMemory::OfFile(std::move(**file), static_cast<size_t>(bytes_));
  if (!map) {
    unlink(path_.c_str());
    throw std::runtime_error(map.error().message);
  }
  map_ = std::move(*map);
  mapped_ = at::from_blob(map_.data(), {elements}, at::kFloat);
  OpenDirect();
}

StateFile::~StateFile() {
  unlink(path_.c_str());
}

// Opens the direct descriptor, or falls back to the cached one. A file system that accepts O_DIRECT may still
// refuse the first read, so one block is read to find out.
void StateFile::OpenDirect() {
  direct_fd_ = UniqueFd(open(path_.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC | O_NOFOLLOW));
  if (!direct_fd_.valid()) return;
  const std::unique_ptr<void, decltype(&std::free)> block(std::aligned_alloc(kDiskBlock, kDiskBlock),
                                                          &std::free);
  direct_ = pread(direct_fd_.get(), block.get(), kDiskBlock, 0) == kDiskBlock;
}

void StateFile::Read(int64_t begin, int64_t blocks, float* memory) const {
  char* const to = reinterpret_cast<char*>(memory);
  MoveAll(path_, "cannot be read", blocks * kDiskBlock, [&](int64_t done) {
    return pread(fd(), to + done, static_cast<size_t>(blocks * kDiskBlock - done), begin * 4 + done);
  });
}

// If a file was cut, a write beyond its end would extend it again, with zeros that later reads would take for
// states.
void StateFile::CheckIsWhole() const {
  struct stat found = {};
  if (fstat(fd(), &found) != 0) Fail(path_, "cannot be looked at", errno);
  if (found.st_size >= bytes_) return;
  throw std::runtime_error(fmt::format("{}: it was cut to {} of {} bytes while this process uses it", path_,
                                       found.st_size, bytes_));
}

void StateFile::Write(int64_t begin, int64_t blocks, const float* memory) const {
  CheckIsWhole();
  const char* const from = reinterpret_cast<const char*>(memory);
  MoveAll(path_, "cannot be written", blocks * kDiskBlock, [&](int64_t done) {
    return pwrite(fd(), from + done, static_cast<size_t>(blocks * kDiskBlock - done), begin * 4 + done);
  });
}

}  // namespace dynamiccl::zero
