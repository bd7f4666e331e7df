// SPDX-License-Identifier: Apache-2.0
// A file, plain or gzipped, as a stream of its decompressed bytes, in constant memory.
#pragma once

#include <functional>
#include <istream>
#include <memory>
#include <string>

#include "src/base/status.h"

namespace dynamiccl {

class GzipStream {
 public:
  static Result<GzipStream> Open(const std::string& path);
  GzipStream(GzipStream&&) noexcept;
  ~GzipStream();

  // Ends at the end of the data or at the first error; `status` tells them apart.
  std::istream& stream();
  // Up to `limit` bytes from the beginning; the stream is used up afterwards.
  std::string Head(size_t limit);
  // Calls `take` with each line, without its newline, until it fails. An error is its own, or `status`.
  Status EachLine(const std::function<Status(std::string& line)>& take);
  // An error when the file is cut short or fails its checksum.
  Status status() const;

 private:
  class Buffer;
  GzipStream(std::string path, std::unique_ptr<Buffer> buffer);

  std::string path_;
  std::unique_ptr<Buffer> buffer_;
  std::unique_ptr<std::istream> stream_;
};

}  // namespace dynamiccl
