// SPDX-License-Identifier: Apache-2.0
// The nodes stand in the order of the text, a member's key before its value, so that a node's descendants
// follow it. The parser keeps its own stack, because a damaged file may open any number of brackets.
#include "traces/import/json_document.h"

#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "traces/import/json_members.h"

namespace dynamiccl {
namespace {

// A number with at most this many digits cannot exceed a double's range.
constexpr size_t kSafeDigits = 300;

// True for bytes that a string may contain without further checks.
constexpr std::array<bool, 256> kPlain = [] {
  std::array<bool, 256> table{};
  for (int c = 0x20; c < 0x80; ++c) table[static_cast<size_t>(c)] = c != '"' && c != '\\';
  return table;
}();

std::optional<double> DoubleIn(std::string_view text) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  // from_chars returns the same error for numbers that are too small for a double and for those that are too
  // large. strtod returns 0 for the former and infinity for the latter.
  if (code == std::errc::result_out_of_range) value = std::strtod(std::string(text).c_str(), nullptr);
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

}  // namespace

// ---- values ----

JsonValue JsonValue::operator[](size_t index) const {
  if (!is_array() || index >= node().children) return {};
  uint32_t at = index_ + 1;
  for (; index > 0; --index) at = nodes_[at].next;
  return At(at);
}

JsonValue JsonValue::operator[](std::string_view key) const {
  JsonValue found;
  if (!is_object()) return found;
  for (uint32_t i = index_ + 1; i < node().next; i = nodes_[i + 1].next) {
    const JsonValue name = At(i);
    if (nodes_[i].escaped ? name.Text() == key : name.raw() == key) found = At(i + 1);
  }
  return found;
}

std::string JsonValue::Text() const {
  if (!is_string()) return {};
  return node().escaped ? JsonText({text_ + node().begin - 1, raw().size() + 2}) : std::string(raw());
}

std::optional<int64_t> JsonValue::Integer() const {
  if (is_string()) return JsonInteger(node().escaped ? std::string_view(Text()) : raw());
  if (!is_number()) return std::nullopt;
  if (const auto integer = JsonInteger(raw())) return integer;
  // Above this bound a double cannot represent every integer.
  const auto number = Number(9e15);
  return number ? std::optional(static_cast<int64_t>(*number)) : std::nullopt;
}

std::optional<uint64_t> JsonValue::Unsigned() const {
  return is_number() ? JsonUnsigned(raw()) : std::nullopt;
}

std::optional<double> JsonValue::Number(double limit) const {
  const auto number = is_number() ? DoubleIn(raw()) : std::nullopt;
  return number && std::abs(*number) <= limit ? number : std::nullopt;
}

// ---- parsing ----

std::optional<JsonValue> JsonDocument::Parse(std::string_view text) {
  text_ = text;
  at_ = 0;
  nodes_.clear();
  open_.clear();
  if (text.size() >= UINT32_MAX) return std::nullopt;
  do {
    if (!ReadValue() || !ReadBehindValue()) return std::nullopt;
  } while (!open_.empty());
  SkipBlanks();
  if (at_ != text_.size()) return std::nullopt;
  return JsonValue(text_.data(), nodes_.data(), 0);
}

void JsonDocument::SkipBlanks() {
  while (at_ < text_.size() && IsJsonBlank(text_[at_])) ++at_;
}

// Reads the value at the cursor. Of an array or object it reads only the opening bracket and what comes first
// inside, down to a value that contains no other one. ReadBehindValue continues after that value.
bool JsonDocument::ReadValue() {
  for (;;) {
    SkipBlanks();
    const char c = Peek();
    if (c == '"') return ReadString();
    if (c == '-' || (c >= '0' && c <= '9')) return ReadNumber();
    if (c == 't') return ReadWord("true", JsonValue::Kind::kWord);
    if (c == 'f') return ReadWord("false", JsonValue::Kind::kWord);
    if (c == 'n') return ReadWord("null", JsonValue::Kind::kNull);
    if (c != '{' && c != '[') return false;
    const size_t depth = open_.size();
    if (!Open(c == '{' ? JsonValue::Kind::kObject : JsonValue::Kind::kArray)) return false;
    if (open_.size() == depth) return true;  // the array or object is empty
  }
}

bool JsonDocument::Open(JsonValue::Kind kind) {
  open_.push_back(static_cast<uint32_t>(nodes_.size()));
  nodes_.push_back({.begin = static_cast<uint32_t>(at_), .kind = kind});
  ++at_;
  SkipBlanks();
  const bool object = kind == JsonValue::Kind::kObject;
  if (Peek() == (object ? '}' : ']')) {
    Close();
    return true;
  }
  ++nodes_.back().children;
  return !object || ReadKey();
}

void JsonDocument::Close() {
  Node& node = nodes_[open_.back()];
  node.end = static_cast<uint32_t>(++at_);
  node.next = static_cast<uint32_t>(nodes_.size());
  open_.pop_back();
}

bool JsonDocument::ReadBehindValue() {
  while (!open_.empty()) {
    Node& outer = nodes_[open_.back()];
    const bool object = outer.kind == JsonValue::Kind::kObject;
    SkipBlanks();
    const char c = Peek();
    if (c == ',') {
      ++at_;
      ++outer.children;
      return !object || ReadKey();
    }
    if (c != (object ? '}' : ']')) return false;
    Close();
  }
  return true;
}

bool JsonDocument::ReadKey() {
  SkipBlanks();
  if (Peek() != '"' || !ReadString()) return false;
  SkipBlanks();
  if (Peek() != ':') return false;
  ++at_;
  return true;
}

// Strings with escapes or letters beyond ASCII are rare. Whether they are valid is decided by nlohmann's
// parser.
bool JsonDocument::ReadString() {
  const size_t begin = ++at_;
  bool plain = true, escaped = false;
  while (at_ < text_.size() && text_[at_] != '"') {
    const auto c = static_cast<unsigned char>(text_[at_]);
    plain &= kPlain[c];
    escaped |= c == '\\';
    at_ += c == '\\' ? 2 : 1;
  }
  if (at_ >= text_.size()) return false;
  if (!plain && !nlohmann::json::accept(text_.substr(begin - 1, at_ - begin + 2))) return false;
  nodes_.push_back({.begin = static_cast<uint32_t>(begin),
                    .end = static_cast<uint32_t>(at_),
                    .next = static_cast<uint32_t>(nodes_.size() + 1),
                    .kind = JsonValue::Kind::kString,
                    .escaped = escaped});
  ++at_;
  return true;
}

bool JsonDocument::Digits() {
  const size_t begin = at_;
  while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
  return at_ > begin;
}

bool JsonDocument::ReadNumber() {
  const size_t begin = at_;
  at_ += Peek() == '-';
  const bool zero = Peek() == '0';
  const size_t digits = at_;
  if (!Digits() || (zero && at_ > digits + 1)) return false;
  if (Peek() == '.' && (++at_, !Digits())) return false;
  const bool exponent = Peek() == 'e' || Peek() == 'E';
  if (exponent) {
    ++at_;
    at_ += Peek() == '+' || Peek() == '-';
    if (!Digits()) return false;
  }
  const std::string_view number = text_.substr(begin, at_ - begin);
  if ((exponent || number.size() > kSafeDigits) && !DoubleIn(number)) return false;
  nodes_.push_back({.begin = static_cast<uint32_t>(begin),
                    .end = static_cast<uint32_t>(at_),
                    .next = static_cast<uint32_t>(nodes_.size() + 1),
                    .kind = JsonValue::Kind::kNumber});
  return true;
}

bool JsonDocument::ReadWord(std::string_view word, JsonValue::Kind kind) {
  if (!text_.substr(at_).starts_with(word)) return false;
  nodes_.push_back({.begin = static_cast<uint32_t>(at_),
                    .end = static_cast<uint32_t>(at_ + word.size()),
                    .next = static_cast<uint32_t>(nodes_.size() + 1),
                    .kind = kind});
  at_ += word.size();
  return true;
}

// ---- shapes ----

namespace {

// Adds the elements of the first `tensors` values to `sum`; false where they are no shapes.
bool AddShapes(JsonValue shapes, size_t tensors, int depth, int64_t& sum) {
  constexpr int kDeepest = 64;
  if (!shapes.is_array() || shapes.size() == 0 || tensors == 0 || depth > kDeepest) return false;
  bool right = true;
  shapes.EachElement([&](JsonValue shape) {
    if (!right || tensors == 0) return;
    --tensors;
    int64_t nested = 0, elements = 1;
    if (shape[0].is_array()) {
      right = AddShapes(shape, SIZE_MAX, depth + 1, nested) && !__builtin_add_overflow(sum, nested, &sum);
      return;
    }
    right = shape.is_array();
    shape.EachElement([&](JsonValue dimension) {
      const int64_t size = dimension.Integer().value_or(-1);
      right = right && size >= 0 && !__builtin_mul_overflow(elements, size, &elements);
    });
    right = right && !__builtin_add_overflow(sum, elements, &sum);
  });
  return right && sum <= int64_t{1} << 62;
}

}  // namespace

std::optional<int64_t> ElementsOfShapes(JsonValue shapes, size_t tensors) {
  int64_t sum = 0;
  return AddShapes(shapes, tensors, 0, sum) ? std::optional(sum) : std::nullopt;
}

}  // namespace dynamiccl
