// SPDX-License-Identifier: Apache-2.0
// The bytes of a trace, in memory or in a file that is read piece by piece. Private to traces/format.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace dynamiccl {

// Read access to a sequence of bytes of known size. One thread at a time.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual size_t size() const = 0;
  // Returns the bytes from `offset` on, which must lie inside the source. They are valid until the next call.
  // An error means that the file cannot be read.
  virtual Result<std::span<const std::byte>> Read(size_t offset, size_t bytes) = 0;
};

// A source over memory, which must outlive it. Spans from it stay valid as long as that memory.
class MemoryBytes final : public ByteSource {
 public:
  explicit MemoryBytes(std::span<const std::byte> bytes) : bytes_(bytes) {}
  size_t size() const override { return bytes_.size(); }
  Result<std::span<const std::byte>> Read(size_t offset, size_t bytes) override {
    return bytes_.subspan(offset, bytes);
  }

 private:
  std::span<const std::byte> bytes_;
};

// A source over an open file, which this object closes. It keeps one piece in memory at a time.
class FileBytes final : public ByteSource {
 public:
  // Returns kNotFound if the file cannot be opened. The file's size is read once, here.
  static Result<FileBytes> Open(const std::string& path);
  size_t size() const override { return size_; }
  Result<std::span<const std::byte>> Read(size_t offset, size_t bytes) override;

 private:
  FileBytes(UniqueFd file, size_t size) : file_(std::move(file)), size_(size) {}
  UniqueFd file_;
  size_t size_ = 0;
  std::vector<std::byte> buffer_;
};

}  // namespace dynamiccl
