// SPDX-License-Identifier: Apache-2.0
// Reads archives of traces. Input: byte 0, bit 0: salvage. Bit 1: the rest repeats {u8 kind, u32 section, u32
// records, u64 first record, u16 length, bytes}, of which the entry makes blocks with right checksums; else
// the rest is the file.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>

#include "tests/fuzz/fuzz_input.h"
#include "traces/format/record_columns.h"
#include "traces/format/trace_archive.h"
#include "traces/format/trace_header.h"

namespace {

using namespace dynamiccl;

template <typename Header>
void PutSealed(ByteWriter& file, Header header) {
  header.checksum = XXH3_64bits(&header, offsetof(Header, checksum));
  file.Put(header);
}

std::vector<std::byte> Description(std::span<const std::byte> bytes) {
  TraceHeader header{};
  if (!bytes.empty())
    std::memcpy(&header, bytes.data(), std::min(bytes.size(), offsetof(TraceHeader, checksum)));
  std::memcpy(header.magic, kTraceMagic, sizeof(header.magic));
  header.version = kTraceVersion;
  header.checksum = XXH3_64bits(&header, offsetof(TraceHeader, checksum));
  const auto whole = std::as_bytes(std::span(&header, 1));
  return {whole.begin(), whole.end()};
}

void PutBlock(ByteWriter& file, ByteReader& input) {
  ArchiveBlockHeader block{};
  block.magic = kArchiveBlockMagic;
  block.kind = input.Get<uint8_t>() % 5;
  block.section = input.Get<uint32_t>();
  block.records = input.Get<uint32_t>();
  block.first_record = input.Get<uint64_t>();
  const auto raw = input.GetBytes(std::min<size_t>(input.Get<uint16_t>(), input.remaining()));
  const bool describes = block.kind == static_cast<uint32_t>(ArchiveBlockKind::kSection);
  const auto payload = describes ? Compress(Description(raw)) : Compress(raw);
  block.payload_bytes = payload.size();
  block.payload_hash = XXH3_64bits(payload.data(), payload.size());
  PutSealed(file, block);
  file.PutBytes(payload);
}

std::vector<std::byte> Blocks(ByteReader& input) {
  ByteWriter file;
  ArchiveHeader header{};
  std::memcpy(header.magic, kArchiveMagic, sizeof(header.magic));
  header.version = kArchiveVersion;
  header.header_bytes = sizeof(header);
  PutSealed(file, header);
  while (input.ok() && input.remaining() > 0) PutBlock(file, input);
  return std::move(file.buffer());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ByteReader input(fuzz::BytesOf(data, size));
  const auto options = input.Get<uint8_t>();
  const TraceReading reading = (options & 1) != 0 ? TraceReading::kSalvage : TraceReading::kStrict;
  if ((options & 2) != 0) {
    (void)ParseTraceArchive(Blocks(input), "fuzz", reading);
  } else {
    (void)ParseTraceArchive(fuzz::RestOf(input), "fuzz", reading);
  }
  return 0;
}
