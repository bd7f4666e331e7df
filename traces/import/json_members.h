// SPDX-License-Identifier: Apache-2.0
// Iterates over the members of a small JSON object as text, without building a document. It is made for files
// with millions of events of which few matter. The caller has checked that brackets and strings are closed
// (json_pieces.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dynamiccl {

// True for the four characters that JSON takes for blank.
inline bool IsJsonBlank(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

// True for bytes that cannot be inside a number or a word: they end it.
inline bool EndsJsonWord(char c) {
  return IsJsonBlank(c) || c == ',' || c == ':' || c == '"' || c == '{' || c == '}' || c == '[' || c == ']';
}

// A member. `value` is a complete value as the file has it: a string with its quotes, a number, a word, or
// brackets with everything inside.
struct JsonMember {
  std::string_view key;
  std::string_view value;
};

// Walks over an object from its first member on. Views point into the text, which must outlive them.
class JsonMembers {
 public:
  // `object` begins with '{' and ends with the '}' that closes it.
  explicit JsonMembers(std::string_view object) : text_(object) {}

  // Returns the next member; nothing at the end, or if the text is not an object. `broken` distinguishes the
  // two.
  std::optional<JsonMember> Next();
  // True once the text turned out not to be an object; `position` is then the byte of the error.
  bool broken() const { return broken_; }
  size_t position() const { return at_; }

 private:
  char Peek();
  std::optional<std::string_view> Value();
  std::optional<JsonMember> Break();

  std::string_view text_;
  size_t at_ = 0;
  bool broken_ = false;
};

// All members of a small object at once. Looking up a key takes time in proportion to the number of members.
class JsonObject {
 public:
  explicit JsonObject(std::string_view object) {
    JsonMembers members(object);
    while (const auto member = members.Next()) members_.push_back(*member);
    broken_ = members.broken();
    position_ = members.position();
  }
  // The value of a key as the file has it; empty without one.
  std::string_view operator[](std::string_view key) const {
    for (const JsonMember& member : members_) {
      if (member.key == key) return member.value;
    }
    return {};
  }
  bool broken() const { return broken_; }
  size_t position() const { return position_; }

 private:
  std::vector<JsonMember> members_;
  bool broken_ = false;
  size_t position_ = 0;
};

// The next element of an array, as text: "[[3,4],[5]]" gives "[3,4]" and "[5]". `at` is the position between
// calls and begins at 0. Returns nothing at the end.
std::optional<std::string_view> NextJsonElement(std::string_view array, size_t& at);

// The text of a string value, with escapes resolved; of any other value its text. Broken escapes stay as they
// are.
std::string JsonText(std::string_view value);
// Returns an integer, which may also be written as a string; nothing for any other value, or beyond 64 bits.
std::optional<int64_t> JsonInteger(std::string_view value);
std::optional<uint64_t> JsonUnsigned(std::string_view value);
// Converts microseconds with any number of decimals to nanoseconds. It does not use double, because times
// since 1970 have 16 digits before the point. Values beyond 64 bits saturate; text that is not a number gives
// nothing.
std::optional<int64_t> JsonMicroseconds(std::string_view value);

}  // namespace dynamiccl
