// SPDX-License-Identifier: Apache-2.0
// A file, plain or gzipped, as a stream of its decompressed bytes, in constant memory. A UTF-8 byte order
// mark at the beginning is passed over.
#pragma once

#include <functional>
#include <istream>
#include <memory>
#include <optional>
#include <string>

#include "src/base/status.h"

namespace dynamiccl {

// One open file; movable, one thread. Reading stops at the end of the data or at the first error, and
// `status` tells these apart, so a caller asks for it after reading.
class GzipStream {
 public:
  // kNotFound if the file cannot be opened; kInvalidArgument, with the program that unpacks it, for a file of
  // another compression or of UTF-16. Damage shows only while reading.
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
  // The same for a log whose writer may have been killed: where the last line has no end and `take` refuses
  // it, its error goes to `cut` and is no error of the file.
  Status EachLineOfLog(const std::function<Status(std::string& line)>& take, std::optional<Error>& cut);
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
