// SPDX-License-Identifier: Apache-2.0
// Traces for tests: random ones that use every bit of a field, and small realistic ones.
#pragma once

#include <cstring>
#include <random>

#include "traces/format/record_views.h"
#include "traces/format/trace.h"

namespace dynamiccl {

// Returns a trace with random bits in all fields. Only its times are in order.
inline Trace AnyTrace(uint64_t seed) {
  std::mt19937_64 random(seed);
  Trace trace;
  for (int32_t rank = 0; rank < 3; ++rank) {
    TraceSection section;
    section.rank = rank;
    section.world = 3;
    section.process_id = static_cast<int64_t>(random() % 100000);
    section.flags = rank == 1 ? kTraceMirrored | kTraceImported | kTraceOrderOnly | kTraceGroupsUnknown : 0;
    section.host = "node\"1\"";
    section.library = "NCCL 2.28.9";
    section.writer = "test";
    section.opened = {static_cast<int64_t>(random() >> 1), static_cast<int64_t>(random() >> 1)};
    section.closed = rank != 2;
    section.lost = random() % 3;
    section.replaced = section.lost / 2;
    if (rank == 0) section.set_end({ProcessEnd::How::kKilled, true, 9});
    if (rank == 2) section.set_end({ProcessEnd::How::kExited, false, 255});
    int64_t now = -5;
    for (uint64_t i = 0; i < random() % 40; ++i) {
      TraceRecord record;
      for (size_t word = 0; word < 8; ++word) {
        const uint64_t bits = random();
        std::memcpy(reinterpret_cast<char*>(&record) + word * 8, &bits, 8);
      }
      record.issued_ns = now += static_cast<int64_t>(random() % 1000);
      if (random() % 2 == 0) record.kind = static_cast<uint16_t>(random() % 11);
      Seal(record);
      section.records.push_back(record);
    }
    trace.sections.push_back(section);
  }
  return trace;
}

// Builds a section by appending whole records.
class SectionBuilder {
 public:
  SectionBuilder(int32_t rank, int32_t world) {
    section_.rank = rank;
    section_.world = world;
    section_.closed = true;
    Add(CommunicatorRecord(0, {.id = 0xabc, .rank = rank, .n_ranks = world, .n_nodes = 1}, now_));
  }
  SectionBuilder& Add(TraceRecord record) {
    record.issued_ns = now_++;
    Seal(record);
    section_.records.push_back(record);
    return *this;
  }
  SectionBuilder& Call(uint64_t call_number, Collective collective, uint64_t bytes) {
    IssuedCall issued;
    issued.call.call_number = call_number;
    issued.call.collective = collective;
    issued.call.bytes = bytes;
    return Add(CallRecord(0, issued));
  }
  TraceSection& section() { return section_; }

 private:
  int64_t now_ = 1000;
  TraceSection section_;
};

}  // namespace dynamiccl
