// SPDX-License-Identifier: Apache-2.0
// Reads a JSON document of any size as a stream. Members of the outermost object and elements of long arrays
// are passed to the caller one by one, and everything else is skipped. Skipped text is checked for brackets
// and strings only. Memory use is bounded by the longest piece passed to the caller.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "traces/import/gzip_stream.h"

namespace dynamiccl {

// Says how to treat a member of the outermost object: skip it, pass it on as one piece, or pass on the
// elements of its array one by one.
enum class JsonMemberUse { kSkip, kWhole, kElements };

// Reads one document on one thread. Every error names the byte in the decompressed file. An error of the file
// itself, such as a wrong checksum, replaces an error in the text that it caused.
class JsonPieces {
 public:
  // Called with each piece. `text` is one value without surrounding blanks whose brackets and strings are
  // closed; it is valid during the call. `offset` is its first byte in the decompressed file.
  using OnPiece = std::function<Status(std::string_view key, std::string_view text, uint64_t offset)>;
  using UseOf = std::function<JsonMemberUse(std::string_view key)>;

  // `path` is for messages. Both arguments outlive this object.
  JsonPieces(GzipStream& stream, const std::string& path);

  // Reads a document that is one object. Its members are used as `use_of` says.
  Status ReadObject(const UseOf& use_of, const OnPiece& on_piece);

  // Reads a document that is one array, written by a program that may have been killed. A comma before the
  // closing bracket and a missing closing bracket are accepted; an incomplete element is an error.
  Status ReadOpenArray(const OnPiece& on_piece);

  // Byte of the cursor in the decompressed file.
  uint64_t position() const { return base_ + at_; }

 private:
  Status Fail(const std::string& what) const;
  // Skips blanks and returns the byte at the cursor; '\0' at the end of the data.
  char Peek();
  // Appends more bytes to the buffer; false at the end of the data, or when a piece is too long.
  bool Refill();
  // Skips blanks and then this byte; an error if another byte follows.
  Status Expect(char wanted);
  Status TakeKey(std::string& key);
  // Moves the cursor past the value. With `keep` its text stays in the buffer from mark_ on.
  Status PassValue(bool keep);
  // Each moves the cursor past one kind of value: an object or array, a string, or a number or word.
  Status PassBrackets();
  Status PassString();
  Status PassWord();
  std::string_view Kept() const { return {buffer_.data() + mark_, at_ - mark_}; }
  // Passes the value at the cursor on to the caller.
  Status HandOut(std::string_view key, const OnPiece& on_piece);
  Status ReadMember(const UseOf& use_of, const OnPiece& on_piece);
  Status ReadElements(std::string_view key, const OnPiece& on_piece);
  Status ExpectEnd();
  // Returns the stream's own error if there is one, else `status`. A broken file explains why its text is
  // broken.
  Status Judge(Status status) const;

  GzipStream& stream_;
  const std::string& path_;
  std::vector<char> buffer_;
  size_t at_ = 0;    // cursor
  size_t end_ = 0;   // end of the data in the buffer
  size_t mark_ = 0;  // start of the bytes that must stay in the buffer
  bool marked_ = false;
  bool too_long_ = false;
  uint64_t base_ = 0;  // offset of buffer_[0] in the file
  // The closing brackets that PassBrackets expects, innermost last.
  std::string open_;
};

}  // namespace dynamiccl
