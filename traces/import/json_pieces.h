// SPDX-License-Identifier: Apache-2.0
// A JSON document of any size, taken apart as it streams by: members of the outermost object and elements of
// long arrays are handed out one by one, everything else is skipped. What is skipped is checked for brackets
// and strings only. Memory: the longest piece handed out.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "traces/import/gzip_stream.h"

namespace dynamiccl {

enum class JsonMemberUse { kSkip, kWhole, kElements };

class JsonPieces {
 public:
  // `text` is one value without surrounding blanks, whose brackets and strings are closed; it is valid during
  // the call. `offset` is its first byte in the decompressed file.
  using OnPiece = std::function<Status(std::string_view key, std::string_view text, uint64_t offset)>;
  using UseOf = std::function<JsonMemberUse(std::string_view key)>;

  // `path` is for messages. Both outlive this object.
  JsonPieces(GzipStream& stream, const std::string& path);

  // A document that is one object: its members as `use_of` says, of arrays taken by elements each element.
  // Every error names the byte.
  Status ReadObject(const UseOf& use_of, const OnPiece& on_piece);

  // A document that is one array, written by a program that may have been killed: a comma before the closing
  // bracket and a missing closing bracket are fine, an element that is cut short is not.
  Status ReadOpenArray(const OnPiece& on_piece);

  // Of the cursor in the decompressed file.
  uint64_t position() const { return base_ + at_; }

 private:
  Status Fail(const std::string& what) const;
  // The byte at the cursor after blanks, '\0' at the end of the data.
  char Peek();
  bool Refill();
  Status Expect(char wanted);
  Status TakeKey(std::string& key);
  // Moves the cursor behind the value; `keep` leaves its text in the buffer from mark_.
  Status PassValue(bool keep);
  Status PassBrackets();
  Status PassString();
  Status PassWord();
  std::string_view Kept() const { return {buffer_.data() + mark_, at_ - mark_}; }
  Status HandOut(std::string_view key, const OnPiece& on_piece);
  Status ReadMember(const UseOf& use_of, const OnPiece& on_piece);
  Status ReadElements(std::string_view key, const OnPiece& on_piece);
  Status ExpectEnd();
  // The stream's own error where there is one, else `status`: a broken file is the reason for broken text.
  Status Judge(Status status) const;

  GzipStream& stream_;
  const std::string& path_;
  std::vector<char> buffer_;
  size_t at_ = 0;    // cursor
  size_t end_ = 0;   // of the data in the buffer
  size_t mark_ = 0;  // start of what must stay in the buffer
  bool marked_ = false;
  bool too_long_ = false;
  uint64_t base_ = 0;  // offset of buffer_[0] in the file
  std::string open_;   // the closing brackets that PassBrackets waits for
};

}  // namespace dynamiccl
