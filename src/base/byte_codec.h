// SPDX-License-Identifier: Apache-2.0
// Little-endian writing and reading of fixed-size values. Every binary file format and every control message
// of the project is encoded here, so that a format page (docs/formats) and its code agree byte for byte.
//
//   ByteWriter writer;                     ByteReader reader(bytes);
//   writer.Put(uint32_t{7});               const auto number = reader.Get<uint32_t>();
//   writer.PutText("ring");                const std::string name = reader.GetText(64);
//   Send(writer.buffer());                 if (!reader.ok()) return damaged;
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

// Appends values to a growing buffer that it owns. One thread at a time; it fails only when memory runs out.
class ByteWriter {
 public:
  // Appends the object representation of `value`. A struct is written together with its padding bytes, so it
  // should have none.
  template <typename T>
  requires std::is_trivially_copyable_v<T>
  void Put(const T& value) { Append(&value, sizeof(T)); }
  // Appends the bytes without their length, so the reader must know the length.
  void PutBytes(std::span<const std::byte> bytes) { Append(bytes.data(), bytes.size()); }
  // Appends a uint32 length and then the bytes, without a terminating zero.
  void PutText(std::string_view text) {
    Put(static_cast<uint32_t>(text.size()));
    Append(text.data(), text.size());
  }
  // Appends zeros up to the next multiple of `alignment`, counted from the start of the buffer.
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

// Reads values from bytes that the caller owns and keeps alive. It never reads past the end: after the first
// short read `ok()` stays false and every later value is zero or empty. A caller therefore reads a whole
// message and checks `ok()` once at the end. One thread at a time.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename T>
  requires std::is_trivially_copyable_v<T> T Get() {
    T value{};
    if (Take(sizeof(T))) std::memcpy(&value, bytes_.data() + offset_ - sizeof(T), sizeof(T));
    return value;
  }
  // Returns the next `count` bytes as a view into the input; empty after a short read.
  std::span<const std::byte> GetBytes(size_t count) {
    return Take(count) ? bytes_.subspan(offset_ - count, count) : std::span<const std::byte>{};
  }
  // Returns a text that PutText wrote. A length above `limit` counts as damage, so a forged length cannot
  // cause a large allocation.
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
  // Moves past `count` bytes if the input has that many left; otherwise marks the reader as failed.
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
