// SPDX-License-Identifier: Apache-2.0
// Neighbouring records have similar fields, so records are stored field by field. A field that grows steadily
// is stored as zigzag differences: 0, -1, 1, -2 become 0, 1, 2, 3. The numbers of a field are split into byte
// planes. Their high bytes, which are mostly equal, are then adjacent, which helps zstd.
#include "traces/format/record_columns.h"

#include <zstd.h>

#include <array>
#include <cstring>

#include "traces/format/trace.h"

namespace dynamiccl {
namespace {

// Archives are written once and read often. Higher levels gain less than a percent on recorded traces.
constexpr int kZstdLevel = 9;

// Says how a field of the record is stored.
struct Column {
  size_t offset;
  size_t width;
  // True for times and counts: stored as the zigzag difference from the record before.
  bool delta;
};

#define DYNAMICCL_COLUMN(member, delta) \
  { offsetof(TraceRecord, member), sizeof(TraceRecord::member), delta }
constexpr Column kColumns[] = {
    DYNAMICCL_COLUMN(issued_ns, true),       DYNAMICCL_COLUMN(call_number, true),
    DYNAMICCL_COLUMN(bytes, false),          DYNAMICCL_COLUMN(communicator, false),
    DYNAMICCL_COLUMN(stream, false),         DYNAMICCL_COLUMN(kind, false),
    DYNAMICCL_COLUMN(root_or_peer, false),   DYNAMICCL_COLUMN(index_in_group, false),
    DYNAMICCL_COLUMN(group_size, false),     DYNAMICCL_COLUMN(collective, false),
    DYNAMICCL_COLUMN(data_type, false),      DYNAMICCL_COLUMN(op, false),
    DYNAMICCL_COLUMN(algorithm, false),      DYNAMICCL_COLUMN(protocol, false),
    DYNAMICCL_COLUMN(channels, false),       DYNAMICCL_COLUMN(decided_by, false),
    DYNAMICCL_COLUMN(table_version, false),  DYNAMICCL_COLUMN(labels, false),
    DYNAMICCL_COLUMN(labelled_stage, false), DYNAMICCL_COLUMN(duration_source, false),
    DYNAMICCL_COLUMN(coverage, false),       DYNAMICCL_COLUMN(duration_ns, false),
};
#undef DYNAMICCL_COLUMN

// Bytes that a record takes in all columns together.
constexpr size_t kPackedBytes = [] {
  size_t bytes = 0;
  for (const Column& column : kColumns) bytes += column.width;
  return bytes;
}();
static_assert(kPackedBytes == offsetof(TraceRecord, checksum), "a field of the record has no column");

// Returns a field of up to eight bytes as a number.
uint64_t Load(const TraceRecord& record, const Column& column) {
  uint64_t value = 0;
  std::memcpy(&value, reinterpret_cast<const char*>(&record) + column.offset, column.width);
  return value;
}

// Stores a number into a field; the reverse of Load.
void Store(TraceRecord& record, const Column& column, uint64_t value) {
  std::memcpy(reinterpret_cast<char*>(&record) + column.offset, &value, column.width);
}

// Small differences of either sign become small numbers.
uint64_t ZigZag(uint64_t difference) {
  return (difference << 1) ^ (0 - (difference >> 63));
}
uint64_t UnZigZag(uint64_t number) {
  return (number >> 1) ^ (0 - (number & 1));
}

// Writes a column, byte plane by byte plane.
void PutColumn(std::span<const TraceRecord> records, const Column& column, std::byte* planes) {
  uint64_t before = 0;
  for (size_t i = 0; i < records.size(); ++i) {
    const uint64_t value = Load(records[i], column);
    const uint64_t number = column.delta ? ZigZag(value - before) : value;
    before = value;
    for (size_t byte = 0; byte < column.width; ++byte)
      planes[byte * records.size() + i] = static_cast<std::byte>(number >> (8 * byte));
  }
}

// Reads a column back; the reverse of PutColumn.
void TakeColumn(const std::byte* planes, const Column& column, std::span<TraceRecord> records) {
  uint64_t before = 0;
  for (size_t i = 0; i < records.size(); ++i) {
    uint64_t number = 0;
    for (size_t byte = 0; byte < column.width; ++byte)
      number |= static_cast<uint64_t>(planes[byte * records.size() + i]) << (8 * byte);
    before = column.delta ? before + UnZigZag(number) : number;
    Store(records[i], column, before);
  }
}

}  // namespace

std::vector<std::byte> Compress(std::span<const std::byte> bytes) {
  std::vector<std::byte> frame(ZSTD_compressBound(bytes.size()));
  // ZSTD_compress cannot fail here, because the buffer is large enough for any input.
  frame.resize(ZSTD_compress(frame.data(), frame.size(), bytes.data(), bytes.size(), kZstdLevel));
  return frame;
}

Result<std::vector<std::byte>> Decompress(std::span<const std::byte> frame, size_t wanted) {
  const unsigned long long told = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (told != wanted)
    return MakeError(ErrorKind::kCorrupt, "the compressed data is not that of {} bytes", wanted);
  std::vector<std::byte> bytes(wanted);
  const size_t got = ZSTD_decompress(bytes.data(), bytes.size(), frame.data(), frame.size());
  if (ZSTD_isError(got) != 0 || got != wanted)
    return MakeError(ErrorKind::kCorrupt, "the compressed data is damaged: {}",
                     ZSTD_isError(got) != 0 ? ZSTD_getErrorName(got) : "too short");
  return bytes;
}

std::vector<std::byte> PackRecords(std::span<const TraceRecord> records) {
  std::vector<std::byte> planes(records.size() * kPackedBytes);
  for (const Column& column : kColumns)
    PutColumn(records, column, planes.data() + column.offset * records.size());
  return Compress(planes);
}

Status UnpackRecords(std::span<const std::byte> frame, size_t count, std::vector<TraceRecord>& records) {
  DYNAMICCL_TRY(const std::vector<std::byte> planes, Decompress(frame, count * kPackedBytes));
  const size_t first = records.size();
  records.resize(first + count);
  const std::span<TraceRecord> taken = std::span(records).subspan(first);
  for (const Column& column : kColumns) TakeColumn(planes.data() + column.offset * count, column, taken);
  for (TraceRecord& record : taken) Seal(record);
  return {};
}

}  // namespace dynamiccl
