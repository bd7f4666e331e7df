// SPDX-License-Identifier: Apache-2.0
// Reads traces. Input: a byte of options, then the file. Bit 0: salvage. Bit 1: the entry corrects the
// checksum of the first header. Bit 2: it also corrects the hash of the first section.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>

#include "tests/fuzz/fuzz_input.h"
#include "traces/format/trace_calls.h"
#include "traces/format/trace_header.h"
#include "traces/format/trace_reader.h"
#include "traces/format/trace_writer.h"

namespace {

using namespace dynamiccl;

void Reseal(std::vector<std::byte>& bytes, bool hash) {
  TraceHeader header;
  if (bytes.size() < sizeof(header)) return;
  std::memcpy(&header, bytes.data(), sizeof(header));
  header.checksum = XXH3_64bits(&header, offsetof(TraceHeader, checksum));
  const uint64_t end = header.section_bytes;
  if (hash && end >= 528 && end <= bytes.size()) {
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, bytes.data() + 480, 40);
    XXH3_64bits_update(&state, bytes.data() + 528, end - 528);
    header.content_hash = XXH3_64bits_digest(&state);
  }
  std::memcpy(bytes.data(), &header, sizeof(header));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ByteReader input(fuzz::BytesOf(data, size));
  const auto options = input.Get<uint8_t>();
  const auto rest = fuzz::RestOf(input);
  std::vector<std::byte> bytes(rest.begin(), rest.end());
  if ((options & 2) != 0) Reseal(bytes, (options & 4) != 0);
  const TraceReading reading = (options & 1) != 0 ? TraceReading::kSalvage : TraceReading::kStrict;
  const auto trace = ParseTrace(bytes, "fuzz", reading);
  if (!trace) return 0;
  for (const TraceSection& section : trace->sections) (void)CallsOf(section);
  const fuzz::InputFile file(bytes);
  (void)ReadTraceTail(fuzz::InputFile::path(), 3);
  return 0;
}
