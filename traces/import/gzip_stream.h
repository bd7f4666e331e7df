// SPDX-License-Identifier: Apache-2.0
// A file, plain or gzipped, as a stream of its decompressed bytes, in constant memory. A UTF-8 byte order
// mark at the beginning is skipped.
#pragma once

#include <functional>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/status.h"

namespace dynamiccl {

// One open file; movable, used by one thread. Reading stops at the end of the data or at the first error.
// `status` distinguishes the two, so check it after reading.
class GzipStream {
 public:
  // kNotFound if the file cannot be opened. kInvalidArgument for a file in UTF-16, with another compression,
  // or for a tar archive, gzipped or not; the hint names the program that unpacks it. Damage is detected only
  // while reading.
  static Result<GzipStream> Open(const std::string& path);
  GzipStream(GzipStream&&) noexcept;
  ~GzipStream();

  // The decompressed bytes as a stream, which is valid as long as this object.
  std::istream& stream();
  // Returns the bytes that are decompressed and not yet read. There are at least 4096 of them, unless the
  // file ends before. They are valid until something is read.
  std::string_view Ahead();
  // Returns up to `limit` bytes from the beginning. The stream is used up afterwards: open the file again to
  // read it.
  std::string Head(size_t limit);
  // The next line without its newline; nothing at the end of the data or at its first error. The view is
  // valid until the next call.
  std::optional<std::string_view> NextLine();
  // True if the line that NextLine returned last ends with a newline.
  bool line_ended() const { return line_ended_; }
  // True if the data ended inside a line, which may then be cut. NextLine has returned nothing.
  bool ended_in_line() const { return ended_in_line_; }
  // Calls `take` with each line, without its newline, until `take` fails. Returns the error of `take` if it
  // failed; else the stream's status().
  Status EachLine(const std::function<Status(std::string_view line)>& take);
  // Like EachLine, for a log whose writer may have been killed. If the last line has no newline and `take`
  // refuses it, the error is stored in `cut` and the result is not an error.
  Status EachLineOfLog(const std::function<Status(std::string_view line)>& take, std::optional<Error>& cut);
  // An error if the file is cut short or fails its checksum; it states the byte in the decompressed data.
  Status status() const;

 private:
  class Buffer;
  GzipStream(std::string path, std::unique_ptr<Buffer> buffer);

  std::string path_;
  std::unique_ptr<Buffer> buffer_;
  std::unique_ptr<std::istream> stream_;
  std::string long_line_;  // a line that does not lie in one piece in the buffer
  bool line_ended_ = false;
  bool ended_in_line_ = false;
};

// The note on a table whose last line has all columns but no newline. Some programs always write it so, but
// the last number may also be cut.
inline constexpr char kLastLineOpen[] =
    "the last line has no newline: if the file is cut, its last number may be too";

}  // namespace dynamiccl
