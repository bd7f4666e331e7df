// SPDX-License-Identifier: Apache-2.0
// Writes protobuf's wire format field by field (https://protobuf.dev/programming-guides/encoding), without a
// schema.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dynamiccl {

// A message that is being built. Functions return the message, so calls can be chained:
// ProtobufMessage().Number(1, 7).Text(2, "a").
class ProtobufMessage {
 public:
  // Appends a field of type int32, int64, uint64, bool or an enumeration, even if it is 0.
  ProtobufMessage& Number(uint32_t field, uint64_t value) {
    Varint(uint64_t{field} << 3);
    Varint(value);
    return *this;
  }
  // Appends a field that is a string or a message.
  ProtobufMessage& Text(uint32_t field, std::string_view value) {
    Varint(uint64_t{field} << 3 | 2);
    return Delimited(value);
  }
  // Appends length and bytes without a field number, as in a stream of messages.
  ProtobufMessage& Delimited(std::string_view value) {
    Varint(value.size());
    bytes_ += value;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace dynamiccl
