// SPDX-License-Identifier: Apache-2.0
// A field is a tag (number << 3 | wire type) and a value: a varint of 7 bits per byte, 4 or 8 bytes
// little-endian, or a length and as many bytes. Each length is checked against the message before it is used.
#include "traces/import/protobuf_fields.h"

#include <cstring>

namespace dynamiccl {
namespace {

// Maximum number of bits in a varint's value.
constexpr int kVarintBits = 64;

}  // namespace

tl::unexpected<Error> ProtobufFields::Fail(const char* what) const {
  return MakeError(ErrorKind::kInvalidArgument, "byte {}: {}", offset_ + at_, what);
}

Result<uint64_t> ProtobufFields::Varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < kVarintBits; shift += 7) {
    if (at_ == message_.size()) return Fail("the message ends inside a number");
    const auto byte = static_cast<uint8_t>(message_[at_++]);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return Fail("a number of more than 64 bits");
}

Result<uint64_t> ProtobufFields::Fixed(size_t bytes) {
  if (message_.size() - at_ < bytes) return Fail("the message ends inside a number");
  uint64_t value = 0;
  std::memcpy(&value, message_.data() + at_, bytes);
  at_ += bytes;
  return value;
}

Result<bool> ProtobufFields::Next(ProtobufField& field) {
  if (at_ == message_.size()) return false;
  field = {};
  field.offset = offset_ + at_;
  DYNAMICCL_TRY(const uint64_t tag, Varint());
  field.number = tag >> 3;
  field.wire = static_cast<ProtobufWire>(tag & 7);
  if (field.number == 0) return Fail("a field of number 0");
  switch (field.wire) {
    case ProtobufWire::kVarint: {
      DYNAMICCL_TRY(field.value, Varint());
      return true;
    }
    case ProtobufWire::kFixed64:
    case ProtobufWire::kFixed32: {
      DYNAMICCL_TRY(field.value, Fixed(field.wire == ProtobufWire::kFixed64 ? 8 : 4));
      return true;
    }
    case ProtobufWire::kBytes: {
      DYNAMICCL_TRY(const uint64_t length, Varint());
      if (length > message_.size() - at_) return Fail("a field goes past the end of its message");
      field.offset = offset_ + at_;
      field.bytes = message_.substr(at_, length);
      at_ += length;
      return true;
    }
  }
  return Fail("a field of unknown encoding");
}

}  // namespace dynamiccl
