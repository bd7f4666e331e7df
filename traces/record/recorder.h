// SPDX-License-Identifier: Apache-2.0
// Writes the calls of a job into a .ctrace file, from inside the job. Each thread has its own ring of records
// in the mapped file, so everything committed survives SIGKILL of the process. The recorder is linked into
// the shared object that is loaded into jobs.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "src/base/shared_memory.h"
#include "src/base/status.h"
#include "src/base/unique_fd.h"
#include "traces/format/record_views.h"
#include "traces/format/trace_header.h"

namespace dynamiccl {

// Options of a recorder.
struct RecorderOptions {
  std::string path;  // path of the file, already expanded (ExpandPath)
  // Capacity of a thread's ring in records, rounded up to a power of two from 64 to 2^24. When it is full,
  // each new record replaces the oldest.
  uint64_t records_per_thread = 262144;
  int32_t rank = -1;    // rank of this process in its job; -1: unknown
  int32_t world = 0;    // processes in the job; 0: unknown
  std::string library;  // "NCCL 2.28.9" or "hostccl 2.28.9"
};

// The recorder of a process. A thread's first Append maps its ring, which takes file allocation, mmap and a
// lock. Every later Append takes no lock, allocates nothing and makes no system call. In a forked child,
// Append and Close do nothing, because the file belongs to the parent. Threads may still append during and
// after Close, but not during destruction, so a job's recorder is best never destroyed.
class Recorder {
 public:
  // Creates or truncates the file. Fails when it cannot be created or the disk is full.
  static Result<std::unique_ptr<Recorder>> Open(const RecorderOptions& options);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  ~Recorder();

  // The place of a record, for values that are written later. Copyable; a default Slot refers to no record.
  struct Slot {
    TraceRecord* record = nullptr;
    const SegmentHeader* segment = nullptr;
    uint64_t position = 0;
  };

  // Stores the record and fills in checksum and commit. Communicator and CommunicatorEnd go to a table in
  // which none is ever replaced, under a lock. Never fails: without a ring the record is counted as lost.
  Slot Append(const TraceRecord& record) noexcept;
  // Enter records that the calling thread enters the library with `mark`; Leave removes the mark. If the
  // thread never returns, its mark stays readable in the file. Both are as cheap and as safe as Append. A
  // second Enter replaces the mark of the first.
  void Enter(const InsideWords& mark) noexcept;
  void Leave() noexcept;
  // Adds a duration in nanoseconds to a record of any thread. Does nothing when a newer record has replaced
  // it since.
  void SetDuration(const Slot& slot, DurationSource source, int64_t nanoseconds) noexcept;
  // Marks in the file that the process ended in order. May be called more than once.
  void Close() noexcept;

  const std::string& path() const { return path_; }
  // Returns the number of records so far that were lost because their thread had no ring.
  uint64_t lost() const noexcept;

 private:
  // The ring of one thread.
  struct Ring {
    SharedMemory memory;
    SegmentHeader* segment = nullptr;
    TraceRecord* records = nullptr;
  };
  // Number of communicator records (begin or end) that the table holds: 255 KiB. Further ones are counted as
  // lost.
  static constexpr uint64_t kTableRecords = 4079;
  // Number of threads that may call NCCL in one process at a time; records of further threads are counted as
  // lost.
  static constexpr uint32_t kMaxRings = 1024;

  Recorder() = default;
  // Creates the file with its header and the table of communicators.
  Status CreateFile(const RecorderOptions& options);
  void FillHeader(const RecorderOptions& options);
  Slot AppendToTable(const TraceRecord& record) noexcept;
  void CountLost() noexcept;
  // The calling thread's ring; null if it has none and can get none, or in a forked child.
  Ring* ThisThreadsRing() noexcept;
  // Takes over the ring of a thread that has ended, or maps a new one. Locks mutex_.
  Ring* FindOrMapRing() noexcept;
  // Extends the file by a segment and maps it.
  Status MapRing(Ring& ring, int64_t thread_id);
  // True in a child of the process that opened the file.
  bool InForkedChild() const;

  std::string path_;
  // Unique in the process: it identifies the recorder to which a thread's cached ring belongs.
  uint64_t key_ = 0;
  // Generation of the process that opened the file; a forked child has the next one.
  uint64_t generation_ = 0;
  uint64_t mask_ = 0;  // records_per_segment - 1
  SharedMemory header_memory_;
  TraceHeader* header_ = nullptr;
  std::mutex mutex_;  // guards table_, rings_ and n_rings_
  Ring table_;
  Ring rings_[kMaxRings];
  uint32_t n_rings_ = 0;
};

}  // namespace dynamiccl
