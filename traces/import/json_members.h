// SPDX-License-Identifier: Apache-2.0
// The members of a small JSON object, whose brackets and strings are known to be closed, taken as text. Made
// for files of millions of events of which few are looked into.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dynamiccl {

inline bool IsJsonBlank(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

// `value` is a whole value as the file has it: a string with its quotes, a number, a word, brackets with all
// inside.
struct JsonMember {
  std::string_view key;
  std::string_view value;
};

// Walks an object from its first member on.
class JsonMembers {
 public:
  // `object` begins with '{' and ends with the '}' that closes it.
  explicit JsonMembers(std::string_view object) : text_(object) {}

  // The next member; nullopt at the end, or where the text is no object: see `broken`.
  std::optional<JsonMember> Next();
  // Set when the text is not an object's; then `position` is where.
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

// All members of a small object at once.
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

// The elements of an array in the same way: "[[3,4],[5]]" gives "[3,4]" and "[5]".
std::optional<std::string_view> NextJsonElement(std::string_view array, size_t& at);

// The text of a string value, escapes resolved; of any other value its text. Broken escapes stay as they are.
std::string JsonText(std::string_view value);
// An integer, also one written as a string; nullopt for anything else, or beyond 64 bits.
std::optional<int64_t> JsonInteger(std::string_view value);
std::optional<uint64_t> JsonUnsigned(std::string_view value);
// Microseconds, with any number of decimals, as nanoseconds without rounding through a double (times since
// 1970 have 16 digits before the point). Beyond 64 bits it saturates; nullopt for what is no number.
std::optional<int64_t> JsonMicroseconds(std::string_view value);

}  // namespace dynamiccl
