// SPDX-License-Identifier: Apache-2.0
// Little-endian reading and writing of fixed-size values: every binary format and message of ours goes
// through it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace dynamiccl {

static_assert(std::endian::native == std::endian::little,
              "formats are little-endian; a big-endian port needs swaps here");

class ByteWriter {
 public:
  template <typename T>
  requires std::is_trivially_copyable_v<T>
  void Put(const T& value) { Append(&value, sizeof(T)); }
  void PutBytes(std::span<const std::byte> bytes) { Append(bytes.data(), bytes.size()); }
  // u32 length, then the bytes.
  void PutText(std::string_view text) {
    Put(static_cast<uint32_t>(text.size()));
    Append(text.data(), text.size());
  }
  void AlignTo(size_t alignment) { buffer_.resize((buffer_.size() + alignment - 1) / alignment * alignment); }
  std::vector<std::byte>& buffer() { return buffer_; }

 private:
  void Append(const void* data, size_t bytes) {
    const size_t end = buffer_.size();
    buffer_.resize(end + bytes);
    if (bytes > 0) std::memcpy(buffer_.data() + end, data, bytes);
  }

  std::vector<std::byte> buffer_;
};

// Never reads past the end: after the first short read `ok()` is false and every value is zero. Check once at
// the end.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename T>
  requires std::is_trivially_copyable_v<T> T Get() {
    T value{};
    if (Take(sizeof(T))) std::memcpy(&value, bytes_.data() + offset_ - sizeof(T), sizeof(T));
    return value;
  }
  std::span<const std::byte> GetBytes(size_t count) {
    return Take(count) ? bytes_.subspan(offset_ - count, count) : std::span<const std::byte>{};
  }
  std::string GetText(size_t limit) {
    const auto length = Get<uint32_t>();
    if (length > limit) ok_ = false;
    const auto bytes = GetBytes(ok_ ? length : 0);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  bool ok() const { return ok_; }
  size_t offset() const { return offset_; }
  size_t remaining() const { return bytes_.size() - offset_; }

 private:
  bool Take(size_t count) {
    ok_ = ok_ && count <= remaining();
    if (ok_) offset_ += count;
    return ok_;
  }

  std::span<const std::byte> bytes_;
  size_t offset_ = 0;
  bool ok_ = true;
};

}  // namespace dynamiccl
