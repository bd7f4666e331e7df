// SPDX-License-Identifier: Apache-2.0
// One message of protobuf's wire format, written field by field.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dynamiccl {

class ProtobufMessage {
 public:
  // int32, int64, uint64, bool and enumerations; written even where it is 0.
  ProtobufMessage& Number(uint32_t field, uint64_t value) {
    Varint(uint64_t{field} << 3);
    Varint(value);
    return *this;
  }
  // Strings and messages.
  ProtobufMessage& Text(uint32_t field, std::string_view value) {
    Varint(uint64_t{field} << 3 | 2);
    return Delimited(value);
  }
  // Without a field number, as in a stream of messages.
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
