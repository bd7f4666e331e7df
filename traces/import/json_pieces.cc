// SPDX-License-Identifier: Apache-2.0
// A buffer slides over the file. Each Pass function moves the cursor past one kind of value. Refill keeps the
// bytes from mark_ on while a value is being passed to the caller, and doubles the buffer for a long value.
#include "traces/import/json_pieces.h"

#include <array>
#include <cstring>
#include <istream>

#include "traces/import/json_members.h"

namespace dynamiccl {
namespace {

// Bytes that are read at a time.
constexpr size_t kBlock = 256 * 1024;
// Maximum bytes of a piece. No tool writes a longer event, so a file that seems to contain one is damaged.
constexpr size_t kLongestPiece = 64 * 1024 * 1024;

// The bytes that matter while brackets are skipped: brackets and the beginnings of strings.
constexpr std::array<bool, 256> kStructural = [] {
  std::array<bool, 256> table{};
  for (const char c : {'"', '{', '}', '[', ']'}) table[static_cast<unsigned char>(c)] = true;
  return table;
}();

}  // namespace

JsonPieces::JsonPieces(GzipStream& stream, const std::string& path)
    : stream_(stream), path_(path), buffer_(kBlock) {}

Status JsonPieces::Fail(const std::string& what) const {
  return MakeError(ErrorKind::kCorrupt, "{}: byte {}: {}", path_, base_ + at_,
                   too_long_ ? "a value of more than 64 MiB" : what);
}

bool JsonPieces::Refill() {
  const size_t keep = marked_ ? mark_ : at_;
  std::memmove(buffer_.data(), buffer_.data() + keep, end_ - keep);
  base_ += keep;
  at_ -= keep;
  end_ -= keep;
  mark_ = 0;
  if (end_ == buffer_.size()) {
    too_long_ = end_ >= kLongestPiece;
    if (too_long_) return false;
    buffer_.resize(buffer_.size() * 2);
  }
  stream_.stream().read(buffer_.data() + end_, static_cast<std::streamsize>(buffer_.size() - end_));
  const auto count = static_cast<size_t>(stream_.stream().gcount());
  end_ += count;
  return count > 0;
}

char JsonPieces::Peek() {
  while (true) {
    while (at_ < end_ && IsJsonBlank(buffer_[at_])) ++at_;
    if (at_ < end_) return buffer_[at_];
    if (!Refill()) return '\0';
  }
}

Status JsonPieces::Expect(char wanted) {
  const char found = Peek();
  if (at_ == end_) return Fail(fmt::format("the file ends where '{}' was expected", wanted));
  if (found != wanted) return Fail(fmt::format("'{}' was expected", wanted));
  ++at_;
  return {};
}

Status JsonPieces::PassString() {
  ++at_;  // the opening quote
  while (true) {
    while (at_ < end_ && buffer_[at_] != '"' && buffer_[at_] != '\\') ++at_;
    if (at_ < end_ && buffer_[at_] == '"') {
      ++at_;
      return {};
    }
    // The second byte of an escape may be a quote, so both bytes are skipped together.
    if (at_ + 1 < end_)
      at_ += 2;
    else if (!Refill())
      return Fail("the file ends inside a string");
  }
}

Status JsonPieces::PassBrackets() {
  open_.clear();
  while (true) {
    while (at_ < end_ && !kStructural[static_cast<unsigned char>(buffer_[at_])]) ++at_;
    if (at_ == end_) {
      if (!Refill()) return Fail(fmt::format("the file ends before '{}'", open_.back()));
      continue;
    }
    const char c = buffer_[at_];
    if (c == '"') {
      DYNAMICCL_CHECK_OK(PassString());
      continue;
    }
    if (c == '{' || c == '[') {
      open_ += c == '{' ? '}' : ']';
    } else {
      if (open_.back() != c) return Fail(fmt::format("'{}' where '{}' was expected", c, open_.back()));
      open_.pop_back();
    }
    ++at_;
    if (open_.empty()) return {};
  }
}

Status JsonPieces::PassWord() {
  const uint64_t begin = base_ + at_;
  while (true) {
    while (at_ < end_ && !EndsJsonWord(buffer_[at_])) ++at_;
    if (at_ < end_ || !Refill()) break;
  }
  if (base_ + at_ == begin) return Fail("a value was expected");
  return {};
}

Status JsonPieces::PassValue(bool keep) {
  const char first = Peek();
  mark_ = at_;
  marked_ = keep;
  Status passed = first == '"' ? PassString() : first == '{' || first == '[' ? PassBrackets() : PassWord();
  marked_ = false;
  return passed;
}

Status JsonPieces::TakeKey(std::string& key) {
  if (Peek() != '"')
    return Fail(at_ == end_ ? "the file ends where a name was expected" : "a name was expected");
  DYNAMICCL_CHECK_OK(PassValue(true));
  key = Kept().substr(1, Kept().size() - 2);
  return Expect(':');
}

Status JsonPieces::HandOut(std::string_view key, const OnPiece& on_piece) {
  DYNAMICCL_CHECK_OK(PassValue(true));
  return on_piece(key, Kept(), base_ + mark_);
}

Status JsonPieces::ReadElements(std::string_view key, const OnPiece& on_piece) {
  DYNAMICCL_CHECK_OK(Expect('['));
  for (bool first = true; Peek() != ']'; first = false) {
    if (!first) DYNAMICCL_CHECK_OK(Expect(','));
    DYNAMICCL_CHECK_OK(HandOut(key, on_piece));
  }
  return Expect(']');
}

Status JsonPieces::ReadMember(const UseOf& use_of, const OnPiece& on_piece) {
  std::string key;
  DYNAMICCL_CHECK_OK(TakeKey(key));
  const JsonMemberUse use = use_of(key);
  if (use == JsonMemberUse::kElements && Peek() == '[') return ReadElements(key, on_piece);
  return use == JsonMemberUse::kSkip ? PassValue(false) : HandOut(key, on_piece);
}

Status JsonPieces::ExpectEnd() {
  Peek();
  if (at_ == end_) return {};
  return WithHint(tl::unexpected(Fail("text behind the end of the document").error()),
                  "if several documents were written into one file, give each of them as a file of its own");
}

Status JsonPieces::Judge(Status status) const {
  DYNAMICCL_CHECK_OK(stream_.status());
  return status;
}

Status JsonPieces::ReadObject(const UseOf& use_of, const OnPiece& on_piece) {
  const auto read = [&]() -> Status {
    DYNAMICCL_CHECK_OK(Expect('{'));
    for (bool first = true; Peek() != '}'; first = false) {
      if (!first) DYNAMICCL_CHECK_OK(Expect(','));
      DYNAMICCL_CHECK_OK(ReadMember(use_of, on_piece));
    }
    DYNAMICCL_CHECK_OK(Expect('}'));
    return ExpectEnd();
  };
  return Judge(read());
}

Status JsonPieces::ReadOpenArray(const OnPiece& on_piece) {
  const auto read = [&]() -> Status {
    DYNAMICCL_CHECK_OK(Expect('['));
    while (Peek() != ']' && at_ != end_) {
      DYNAMICCL_CHECK_OK(HandOut("", on_piece));
      if (Peek() == ',')
        ++at_;
      else if (at_ != end_ && buffer_[at_] != ']')
        return Fail("',' was expected");
    }
    if (at_ != end_) ++at_;
    return ExpectEnd();
  };
  return Judge(read());
}

}  // namespace dynamiccl
