// SPDX-License-Identifier: Apache-2.0
// The 64-byte record of a .ctrace file: one cache line, written by one thread, readable after SIGKILL.
// Grammar: docs/formats/trace.md. record_views.h says which fields a kind of record uses, and how.
//
// A recorder fills the record with commit 0 and stores kCommitMark last, with release order. A reader accepts
// a record only if the mark is there and the checksum is right. So it never accepts a record that is being
// written, or one that is half overwritten by another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "src/collective/decided_by.h"

namespace dynamiccl {

// X(name, number): the kinds of records. Readers skip numbers that they do not know.
#define DYNAMICCL_RECORD_KINDS(X)                                                       \
  X(Collective, 1)   /* a collective call was issued at the API */                      \
  X(PointToPoint, 2) /* a Send or Recv was issued */                                    \
  X(Decision, 3)     /* a tuner was asked; algorithm, protocol, channels: its answer */ \
  X(Step, 4)         /* the program marked a training step or phase */                  \
  X(Communicator, 5) /* a communicator began: bytes = its id, root_or_peer = rank */    \
  X(CommunicatorEnd, 6)                                                                 \
  X(Memory, 7)      /* how much memory is free: reported or sampled */                  \
  X(WaitedShare, 8) /* how much of a key's transfers the program waits for */           \
  X(Inside, 9)      /* a call that had not returned when the trace was read */          \
  X(InsideInit, 10) /* the making of a communicator that had not returned */            \
  X(Samples, 11)    /* the program said how many samples the step has that begins */

enum class RecordKind : uint16_t {
#define DYNAMICCL_RECORD_KIND(name, number) k##name = number,
  DYNAMICCL_RECORD_KINDS(DYNAMICCL_RECORD_KIND)
#undef DYNAMICCL_RECORD_KIND
};

// Says how duration_ns was measured.
enum class DurationSource : uint8_t {
  kNone = 0,
  kImported = 1,
  kStream = 2,
  kKernelStamps = 3,
  kEventPair = 4,
  kKernelArrival = 5
};

// One event, with a member for each field of the format. Fields that a kind does not use have the values of
// EmptyRecord (record_views.h).
struct TraceRecord {
  int64_t issued_ns;        // CLOCK_MONOTONIC; the header anchors it to real time
  uint64_t call_number;     // counted per communicator, see CollectiveCall
  uint64_t bytes;           // NCCL's total; Communicator records: the communicator's id
  uint32_t communicator;    // names a Communicator record of the same file
  uint32_t stream;          // folded stream handle, 0 for the null stream
  uint16_t kind;            // RecordKind
  int16_t root_or_peer;     // -1: none; Communicator records: this rank
  uint16_t index_in_group;  // Communicator records: number of nodes
  uint16_t group_size;      // Communicator records: number of ranks
  uint8_t collective;       // Collective
  uint8_t data_type;        // DataType
  uint8_t op;               // ReduceOp
  int8_t algorithm;         // Algorithm, -1 unknown
  int8_t protocol;          // Protocol, -1 unknown
  uint8_t channels;         // 0 unknown
  uint8_t decided_by;       // DecidedBy; Decision records only
  uint8_t table_version;    // Decision records: low 8 bits of the version
  uint8_t labels;           // program's Phase (bits 0 to 2) and Role (3 to 5); Decision: as recognised
  uint8_t labelled_stage;   // ZeroStage, kUnknown without a label; Decision records: as recognised
  uint8_t duration_source;  // DurationSource; written after the call
  uint8_t coverage;         // Coverage of a call; not checksummed
  uint32_t duration_ns;     // written after the call; saturates at 4.29 s
  uint32_t checksum;        // XXH32 of bytes 0 to 49: everything except the fields that are written later
  uint32_t commit;          // kCommitMark, stored last with release order
};

// The value of TraceRecord::commit in a complete record.
inline constexpr uint32_t kCommitMark = 0x64636331;
// The checksum leaves out the fields that are written after the call was issued.
inline constexpr size_t kChecksummedBytes = 50;

static_assert(sizeof(TraceRecord) == 64 && std::is_trivially_copyable_v<TraceRecord>);
static_assert(offsetof(TraceRecord, labels) == 48 &&
              offsetof(TraceRecord, duration_source) == kChecksummedBytes);
static_assert(offsetof(TraceRecord, duration_ns) == 52 && offsetof(TraceRecord, commit) == 60);

}  // namespace dynamiccl
