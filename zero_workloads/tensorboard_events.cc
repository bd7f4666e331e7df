// SPDX-License-Identifier: Apache-2.0
// A minimal writer of the few Protocol Buffers messages that scalars need, so that no library is required.
#include "zero_workloads/tensorboard_events.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <cstring>

#include "src/base/settings.h"

namespace dynamiccl::zero {
namespace {

namespace fs = std::filesystem;

// Table of the CRC's remainder for each byte, so that the checksum is computed a byte at a time.
constexpr std::array<uint32_t, 256> MakeTable() {
  constexpr uint32_t kPolynomial = 0x82F63B78;  // 0x1EDC6F41 with its bits reversed
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t remainder = i;
    for (int bit = 0; bit < 8; ++bit) remainder = remainder >> 1 ^ (remainder & 1 ? kPolynomial : 0);
    table[i] = remainder;
  }
  return table;
}

// Masks a checksum as TFRecord requires. Without the mask, a checksum over data that contains checksums is
// weak.
uint32_t Masked(uint32_t checksum) {
  return std::rotr(checksum, 15) + 0xA282EAD8u;
}

template <typename T>
std::string LittleEndian(T value) {
  static_assert(std::endian::native == std::endian::little, "written byte by byte elsewhere");
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

// The wire format of Protocol Buffers: a key combines field number and type, then the value follows.
enum WireType { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string Key(int field, WireType type) {
  return Varint(static_cast<uint64_t>(field << 3 | type));
}

std::string Bytes(int field, const std::string& value) {
  return Key(field, kLengthDelimited) + Varint(value.size()) + value;
}

// An event with its time only. The numbers in this file are the field numbers of the messages Event, Summary
// and Summary.Value.
std::string Event(double wall_time) {
  return Key(1, kFixed64) + LittleEndian(wall_time);
}

std::string SummaryValue(const Scalar& scalar) {
  return Bytes(1, Bytes(1, scalar.tag) + Key(2, kFixed32) + LittleEndian(scalar.value));
}

}  // namespace

uint32_t Crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = MakeTable();
  uint32_t remainder = ~0u;
  for (const char byte : bytes)
    remainder = remainder >> 8 ^ kTable[(remainder ^ static_cast<uint8_t>(byte)) & 0xFF];
  return ~remainder;
}

Result<TensorboardEvents> TensorboardEvents::Open(const fs::path& folder, double wall_time) {
  std::error_code error;
  fs::create_directories(folder, error);
  // TensorBoard looks for "tfevents" in file names and sorts the files by name.
  TensorboardEvents events(
      folder / fmt::format("events.out.tfevents.{:010.0f}.{}.{}", wall_time, HostName(), getpid()));
  if (!events.good()) {
    return MakeError(ErrorKind::kInvalidArgument, "--tensorboard {}: cannot be written: {}", folder.string(),
                     ErrnoText(errno));
  }
  events.WriteRecord(Event(wall_time) + Bytes(3, "brain.Event:2"));
  return events;
}

void TensorboardEvents::WriteRecord(const std::string& message) {
  const std::string length = LittleEndian(static_cast<uint64_t>(message.size()));
  file_ << length << LittleEndian(Masked(Crc32c(length))) << message << LittleEndian(Masked(Crc32c(message)))
        << std::flush;
}

void TensorboardEvents::Write(int64_t step, double wall_time, std::span<const Scalar> scalars) {
  std::string summary;
  for (const Scalar& scalar : scalars) summary += SummaryValue(scalar);
  WriteRecord(Event(wall_time) + Key(2, kVarint) + Varint(static_cast<uint64_t>(step)) + Bytes(5, summary));
}

}  // namespace dynamiccl::zero
