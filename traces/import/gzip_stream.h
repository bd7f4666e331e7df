// SPDX-License-Identifier: Apache-2.0
// A file, plain or gzipped, as a stream of its decompressed bytes, in constant memory.
#pragma once

#include <functional>
#include <istream>
#include <memory>
#include <string>

#include "src/base/status.h"

namespace dynamiccl {

// One open file; movable, one thread. Reading stops at the end of the data or at the first error, and
// `status` tells these apart, so a caller asks for it after reading.
class GzipStream {
 public:
  // kNotFound if the file cannot be opened. Damage shows only while reading.
  static Result<GzipStream> Open(const std::string& path);
  GzipStream(GzipStream&&) noexcept;
  ~GzipStream();

  // The bytes; valid as long as this object.
  std::istream& stream();
  // Up to `limit` bytes from the beginning. The stream is used up afterwards: open the file again to read it.
  std::string Head(size_t limit);
  // Calls `take` with each line, without its newline, until it fails. Returns the error of `take`, or
  // `status`.
  Status EachLine(const std::function<Status(std::string& line)>& take);
  // An error if the file is cut short or fails its checksum, with the byte of the decompressed data.
  Status status() const;

 private:
  class Buffer;
  GzipStream(std::string path, std::unique_ptr<Buffer> buffer);

  std::string path_;
  std::unique_ptr<Buffer> buffer_;
  std::unique_ptr<std::istream> stream_;
};

}  // namespace dynamiccl
