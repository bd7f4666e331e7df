// SPDX-License-Identifier: Apache-2.0
// The fields of one protobuf message, decoded by the wire format alone
// (https://protobuf.dev/programming-guides/encoding): enough for files whose schema is small and fixed.
#pragma once

#include <cstdint>
#include <string_view>

#include "src/base/status.h"

namespace dynamiccl {

enum class ProtobufWire : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// One field of a message.
struct ProtobufField {
  uint64_t number = 0;
  ProtobufWire wire = ProtobufWire::kVarint;
  uint64_t value = 0;  // value of varints and fixed-size fields
  // Content of strings, bytes, packed lists and messages; points into the message.
  std::string_view bytes;
  // Offset in the file: of `bytes` if the field has bytes, otherwise of the field itself.
  uint64_t offset = 0;
};

// Iterates over the fields of a message, which must outlive the iteration. `offset` is the message's first
// byte in the file; errors state bytes of the file.
class ProtobufFields {
 public:
  ProtobufFields(std::string_view message, uint64_t offset) : message_(message), offset_(offset) {}

  // Reads the next field; false at the end of the message.
  Result<bool> Next(ProtobufField& field);

 private:
  Result<uint64_t> Varint();
  Result<uint64_t> Fixed(size_t bytes);
  tl::unexpected<Error> Fail(const char* what) const;

  std::string_view message_;
  uint64_t offset_;
  size_t at_ = 0;
};

}  // namespace dynamiccl
