// SPDX-License-Identifier: Apache-2.0
// Computes the checksums of records and sections, and compares traces. The content hash covers the file
// except the first part of the header, which has a checksum of its own, and the hash itself.
#include "traces/format/trace.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <cstring>
#include <tuple>

namespace dynamiccl {

void Seal(TraceRecord& record) {
  record.checksum = XXH32(&record, kChecksummedBytes, 0);
  record.commit = kCommitMark;
}

bool IsWhole(const TraceRecord& record) {
  return record.commit == kCommitMark && record.checksum == XXH32(&record, kChecksummedBytes, 0);
}

MissingRecords& MissingRecords::operator+=(const MissingRecords& other) {
  lost += other.lost;
  replaced += other.replaced;
  return *this;
}

std::string Describe(const MissingRecords& missing, std::string_view noun) {
  const std::string replaced = missing.replaced > 0 ? fmt::format(", {} replaced", missing.replaced) : "";
  return fmt::format("{}{} lost{}", missing.lost, noun, replaced);
}

MissingRecords Trace::missing() const {
  MissingRecords missing;
  for (const TraceSection& section : sections) missing += section.missing();
  return missing;
}

// Bits 0 and 1 hold how the process ended. Bit 2 is set if the launcher had begun to end the job. The bits
// from 8 on hold the number.
ProcessEnd TraceSection::end() const {
  const uint32_t bits = flags >> kTraceEndShift;
  const auto how = static_cast<ProcessEnd::How>(std::min(bits & 3, 2u));
  return {how, (bits & 4) != 0, static_cast<uint8_t>(bits >> 8)};
}

void TraceSection::set_end(const ProcessEnd& end) {
  const uint32_t bits =
      static_cast<uint32_t>(end.how) | (end.by_launcher ? 4u : 0u) | static_cast<uint32_t>(end.number) << 8;
  flags = (flags & ((1u << kTraceEndShift) - 1)) | bits << kTraceEndShift;
}

uint64_t ContentHash(std::span<const std::byte> section) {
  constexpr size_t kBefore = offsetof(TraceHeader, segments);
  constexpr size_t kHash = offsetof(TraceHeader, content_hash);
  constexpr size_t kAfter = kHash + sizeof(uint64_t);
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  XXH3_64bits_update(&state, section.data() + kBefore, kHash - kBefore);
  XXH3_64bits_update(&state, section.data() + kAfter, section.size() - kAfter);
  return XXH3_64bits_digest(&state);
}

bool operator==(const TraceSection& a, const TraceSection& b) {
  const auto described = [](const TraceSection& s) {
    return std::tie(s.rank, s.world, s.process_id, s.flags, s.host, s.library, s.writer,
                    s.opened.monotonic_ns, s.opened.realtime_ns, s.closed_at.monotonic_ns,
                    s.closed_at.realtime_ns, s.closed, s.lost, s.replaced);
  };
  return described(a) == described(b) && a.records.size() == b.records.size() &&
         (a.records.empty() ||
          std::memcmp(a.records.data(), b.records.data(), a.records.size() * sizeof(TraceRecord)) == 0);
}

}  // namespace dynamiccl
