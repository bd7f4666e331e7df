// SPDX-License-Identifier: Apache-2.0
// Format: Common Trace Format 1.8, with its metadata in TSDL. The stream file is an unchanged finished
// section: one packet whose context is everything before the records, then one event for each record. No
// record is converted, so the metadata lists the fields in the order of TraceRecord.
#include <fmt/format.h>

#include "src/collective/collective.h"
#include "traces/export/trace_export.h"
#include "traces/format/section_clock.h"
#include "traces/format/trace_writer.h"

namespace dynamiccl {
namespace {

// Doubled braces are fmt's escapes; the single pairs {} are filled in by MetadataOf.
constexpr const char* kMetadata = R"(/* CTF 1.8 */

typealias integer {{ size = 8; align = 8; signed = false; byte_order = le; }} := u8;
typealias integer {{ size = 16; align = 8; signed = false; byte_order = le; }} := u16;
typealias integer {{ size = 32; align = 8; signed = false; byte_order = le; }} := u32;
typealias integer {{ size = 64; align = 8; signed = false; byte_order = le; }} := u64;
typealias integer {{ size = 8; align = 8; signed = true; byte_order = le; }} := i8;
typealias integer {{ size = 16; align = 8; signed = true; byte_order = le; }} := i16;

trace {{
  major = 1;
  minor = 8;
  byte_order = le;
  packet.header := struct {{ u8 before_the_records[{}]; }};
}};

env {{
  rank = {};
  world = {};
  process_id = {};
  lost = {};
}};

clock {{
  name = monotonic;
  description = "CLOCK_MONOTONIC of the process, shown as real time by the anchors of the trace";
  freq = 1000000000;
  offset_s = {};
  offset = {};
}};

typealias integer {{
  size = 64; align = 8; signed = false; byte_order = le; map = clock.monotonic.value;
}} := timestamp;

stream {{
  event.header := struct {{ timestamp issued_ns; }};
}};

event {{
  name = "record";
  fields := struct {{
    u64 call_number;
    u64 bytes;
    u32 communicator;
    u32 _stream;
    enum : u16 {{ {} }} kind;
    i16 root_or_peer;
    u16 index_in_group;
    u16 group_size;
    enum : u8 {{ {} }} collective;
    u8 data_type;
    u8 op;
    i8 algorithm;
    i8 protocol;
    u8 channels;
    u8 decided_by;
    u8 table_version;
    u8 labels;
    u8 labelled_stage;
    u8 duration_source;
    u8 coverage;
    u32 duration_ns;
    u32 checksum;
    u32 commit;
  }};
}};
)";

// Kinds() and Collectives() write the enumerations of the metadata. They use the same lists as the C++ enums.
std::string Kinds() {
  std::string text;
#define DYNAMICCL_RECORD_KIND(name, number) \
  text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", #name, number);
  DYNAMICCL_RECORD_KINDS(DYNAMICCL_RECORD_KIND)
#undef DYNAMICCL_RECORD_KIND
  return text;
}

std::string Collectives() {
  std::string text;
  for (int i = 0; i < kCollectives; ++i) {
    text += fmt::format("{}{} = {}", i == 0 ? "" : ", ", Name(static_cast<Collective>(i)), i);
  }
  return text;
}

std::string MetadataOf(const TraceSection& section) {
  constexpr int64_t kSecond = 1'000'000'000;
  // The whole seconds are rounded down, so that the remaining nanoseconds are not negative.
  const int64_t offset = SectionClock(section).RealTime(0);
  const int64_t seconds = offset / kSecond - (offset % kSecond < 0 ? 1 : 0);
  return fmt::format(fmt::runtime(kMetadata), kTraceHeaderBytes + sizeof(SegmentHeader), section.rank,
                     section.world, section.process_id, section.lost, seconds, offset - seconds * kSecond,
                     Kinds(), Collectives());
}

}  // namespace

Result<Exported> ExportCtf(const Trace& trace) {
  Exported exported;
  for (size_t i = 0; i < trace.sections.size(); ++i) {
    const TraceSection& section = trace.sections[i];
    const int64_t rank = section.rank >= 0 ? section.rank : static_cast<int64_t>(i);
    const std::vector<std::byte> bytes = FormatTrace({{section}});
    exported.files.push_back({fmt::format("rank_{}/metadata", rank), MetadataOf(section)});
    exported.files.push_back({fmt::format("rank_{}/records", rank),
                              std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())});
  }
  return exported;
}

}  // namespace dynamiccl
