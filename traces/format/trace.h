// SPDX-License-Identifier: Apache-2.0
// A trace in memory: for each process that recorded, its description and its records in order of issue.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/format/trace_header.h"
#include "traces/format/trace_record.h"

namespace dynamiccl {

// The end of a process, as the launcher that waited for it saw it. kNotKnown: no launcher noted it.
struct ProcessEnd {
  enum class How : uint8_t { kNotKnown = 0, kExited = 1, kKilled = 2 };
  How how = How::kNotKnown;
  bool by_launcher = false;  // the launcher was already ending the job, so this end is not the cause
  uint8_t number = 0;        // exit code, or the signal's number

  friend bool operator==(const ProcessEnd&, const ProcessEnd&) = default;
};

// How many records a section lacks.
struct MissingRecords {
  // Records that are incomplete or damaged, or that a thread without a ring could not store.
  uint64_t lost = 0;
  // Records that newer ones replaced in a full ring (DYNAMICCL_TRACE_RECORDS).
  uint64_t replaced = 0;

  bool any() const { return lost + replaced > 0; }
  MissingRecords& operator+=(const MissingRecords& other);
};
// Returns "3 records lost, 200 replaced", without the second part if none was replaced. `noun` may be empty.
std::string Describe(const MissingRecords& missing, std::string_view noun = " records");

// The records of one process and their description. `commit` and `checksum` of the records are set (see
// Seal).
struct TraceSection {
  int32_t rank = -1;  // rank of the process in its job; -1: unknown
  int32_t world = 0;  // processes in the job; 0: unknown
  int64_t process_id = 0;
  uint32_t flags = 0;  // TraceFlags without kTraceFinished, and the process's end
  std::string host;
  std::string library;
  std::string writer;
  ClockAnchor opened;
  ClockAnchor closed_at;
  bool closed = false;  // the process ended in order
  // Number of records that are missing: replaced, written by a thread without a ring, incomplete or damaged.
  uint64_t lost = 0;
  // The part of `lost` that newer records replaced in a full ring, by design (DYNAMICCL_TRACE_RECORDS).
  uint64_t replaced = 0;
  std::vector<TraceRecord> records;

  // Returns true if the process recorded that it ran over hostccl, whose buffers are in host memory. Earlier
  // builds wrote NCCL's name into `library` even when the process ran over hostccl.
  bool over_hostccl() const { return library.starts_with("hostccl "); }
  // Returns true if the process's buffers were in host memory: over hostccl, or with a backend of PyTorch
  // that is for CPUs. For gloo this is an assumption, because gloo accepts buffers of GPUs too.
  bool on_host() const { return over_hostccl() || library == "gloo" || library == "dynamiccl"; }
  MissingRecords missing() const { return {lost - std::min(lost, replaced), replaced}; }
  bool mirrored() const { return (flags & kTraceMirrored) != 0; }
  ProcessEnd end() const;
  void set_end(const ProcessEnd& end);
  // Returns true if the times of issue were not measured and only give the order of the records.
  bool order_only() const { return (flags & kTraceOrderOnly) != 0; }
  // Returns true if a communicator of 1 rank may stand for one of unknown size.
  bool groups_unknown() const { return (flags & kTraceGroupsUnknown) != 0; }
};

// One section for each process, in order of rank after a merge.
struct Trace {
  std::vector<TraceSection> sections;
  // Filled by salvage only: a sentence on each part of a file that is cut or damaged.
  std::vector<std::string> damage = {};

  // Returns what all processes together lack.
  MissingRecords missing() const;
  // Returns true if the times of issue of some process were not measured.
  bool order_only() const {
    return std::any_of(sections.begin(), sections.end(),
                       [](const TraceSection& s) { return s.order_only(); });
  }
};

// Sets checksum and commit, as every record of a TraceSection has them.
void Seal(TraceRecord& record);
// True if checksum and commit show that the record is complete.
bool IsWhole(const TraceRecord& record);

// TraceHeader::content_hash of the bytes of a finished section.
uint64_t ContentHash(std::span<const std::byte> section);

bool operator==(const TraceSection& a, const TraceSection& b);
inline bool operator==(const Trace& a, const Trace& b) {
  return a.sections == b.sections;
}

}  // namespace dynamiccl
