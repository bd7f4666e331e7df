// SPDX-License-Identifier: Apache-2.0
// Parses a small JSON text (a line, an event, a node) into a tree whose values are views into the text. It is
// made for files of millions of such texts: parsing allocates nothing once the document has grown. The whole
// grammar of JSON is checked. But a field that is missing or has an unusual type is no error by itself,
// because releases of the tools that write such files differ.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dynamiccl {

// A value of a JsonDocument, valid as long as the document and its text. The null value stands for everything
// that is missing.
class JsonValue {
 public:
  enum class Kind : uint8_t { kNull, kWord, kNumber, kString, kArray, kObject };
  struct Node {
    uint32_t begin = 0, end = 0;  // offsets in the text; for a string, those of the text inside its quotes
    uint32_t next = 0;            // index of the node after the last descendant
    uint32_t children = 0;        // elements of an array, members of an object
    Kind kind = Kind::kNull;
    bool escaped = false;  // the string has escapes
  };

  JsonValue() = default;
  JsonValue(const char* text, const Node* nodes, uint32_t index)
      : text_(text), nodes_(nodes), index_(index) {}

  // Returns false if the value is missing. A null that stands in the file exists.
  bool exists() const { return nodes_ != nullptr; }
  bool is_set() const { return kind() != Kind::kNull; }
  bool is_string() const { return kind() == Kind::kString; }
  bool is_number() const { return kind() == Kind::kNumber; }
  bool is_array() const { return kind() == Kind::kArray; }
  bool is_object() const { return kind() == Kind::kObject; }

  size_t size() const { return is_array() || is_object() ? node().children : 0; }
  // Returns an element of an array; null where there is none. Takes time in proportion to `index`.
  JsonValue operator[](size_t index) const;
  // The value of a key of an object, the last one if there are several; null where there is none.
  JsonValue operator[](std::string_view key) const;
  // Calls take(value) for each element of an array, or take(key, value) for each member of an object.
  template <typename Take>
  void EachElement(const Take& take) const {
    if (!is_array()) return;
    for (uint32_t i = index_ + 1; i < node().next; i = nodes_[i].next) take(At(i));
  }
  template <typename Take>
  void EachMember(const Take& take) const {
    if (!is_object()) return;
    for (uint32_t i = index_ + 1; i < node().next; i = nodes_[i + 1].next) take(At(i).Text(), At(i + 1));
  }

  // A string's text with escapes resolved; empty for other values.
  std::string Text() const;
  // Returns an integer. It may also be written as a string, or with decimals that are all zero. Returns
  // nothing for other values and beyond 64 bits.
  std::optional<int64_t> Integer() const;
  // Returns a number without sign, decimals and exponent; nothing for other values or beyond 64 bits.
  std::optional<uint64_t> Unsigned() const;
  // Returns nothing if the value is no number, or if its absolute value is above `limit`.
  std::optional<double> Number(double limit) const;
  // Returns the value as it stands in the file; for a string, what is inside its quotes.
  std::string_view raw() const {
    return nodes_ == nullptr ? std::string_view()
                             : std::string_view(text_ + node().begin, node().end - node().begin);
  }

 private:
  Kind kind() const { return nodes_ == nullptr ? Kind::kNull : node().kind; }
  const Node& node() const { return nodes_[index_]; }
  JsonValue At(uint32_t index) const { return {text_, nodes_, index}; }

  const char* text_ = nullptr;
  const Node* nodes_ = nullptr;
  uint32_t index_ = 0;
};

// Parses one text after another. Parsing a new text invalidates the values of the previous text.
class JsonDocument {
 public:
  // The value of the whole text; nothing where it is not JSON, or longer than 4 GiB.
  std::optional<JsonValue> Parse(std::string_view text);
  // The byte of the last text at which it turned out not to be JSON.
  size_t position() const { return at_; }

 private:
  using Node = JsonValue::Node;

  void SkipBlanks();
  // Each function reads one part of the text at the cursor. It returns false if the part is not there.
  bool ReadValue();
  bool ReadString();
  bool ReadNumber();
  bool ReadWord(std::string_view word, JsonValue::Kind kind);
  bool ReadKey();
  bool Digits();
  // Enters an array or object, and leaves it again if it is empty.
  bool Open(JsonValue::Kind kind);
  // Reads up to the next value: closing brackets, a comma and, in an object, the next key. False if none of
  // these is there.
  bool ReadBehindValue();
  void Close();
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  std::string_view text_;
  size_t at_ = 0;
  std::vector<Node> nodes_;
  std::vector<uint32_t> open_;  // arrays and objects around the cursor, innermost last
};

// The integer of a key, or `otherwise`.
inline int64_t IntegerOf(JsonValue json, std::string_view key, int64_t otherwise) {
  return json[key].Integer().value_or(otherwise);
}

// Returns the number of elements of all tensors together: [[3,4],[5]] -> 17, [[]] -> 1 (a scalar). Tensors in
// nested lists count too. Only the first `tensors` values are read. Returns nothing if there is no tensor, if
// a value is no shape, if more than 64 lists are nested, or if the number is above 2^62.
std::optional<int64_t> ElementsOfShapes(JsonValue shapes, size_t tensors = SIZE_MAX);

}  // namespace dynamiccl
