// SPDX-License-Identifier: Apache-2.0
// Order of stores for one record, so that a reader after SIGKILL never takes an incomplete record for a
// complete one:
//   1. commit = 0
//   2. head + 1
//   3. the body and its checksum
//   4. commit = kCommitMark
// A record between step 2 and step 4 is torn; there is at most one for each thread. A thread finds its ring
// through a thread_local pointer that carries the recorder's key.
#include "traces/record/recorder.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "src/base/clock.h"
#include "src/base/job_fail_point.h"
#include "src/base/settings.h"

namespace dynamiccl {
namespace {

// Each Store prefetches, for writing, the cache line of the record this many places ahead.
constexpr uint64_t kPrefetchedRecords = 4;

std::atomic<uint64_t> g_next_key{1};
// Generation of the process; a forked child has the next one.
std::atomic<uint64_t> g_generation{1};

// A thread's ring and the recorder to which it belongs.
struct CachedRing {
  uint64_t key = 0;
  void* ring = nullptr;
};
thread_local CachedRing t_cached;

// A forked child has only the thread that forked. This function makes the thread forget its cached ring. The
// thread's next Append then takes the slow path, which notices that the process is a child.
void AfterForkInChild() {
  g_generation.fetch_add(1, std::memory_order_relaxed);
  t_cached = {};
}

// Handlers cannot be removed, so the process registers one for all recorders.
void RegisterForkHandlerOnce() {
  static const int registered = ::pthread_atfork(nullptr, nullptr, AfterForkInChild);
  (void)registered;
}

int64_t ThreadId() {
  return ::syscall(SYS_gettid);
}

// Signal 0 checks whether the thread exists.
bool ThreadEnded(int64_t thread_id) {
  return ::syscall(SYS_tgkill, ::getpid(), thread_id, 0) != 0 && errno == ESRCH;
}

template <size_t N>
void CopyText(char (&field)[N], const std::string& text) {
  std::memcpy(field, text.data(), std::min(text.size(), N - 1));
}

// Reads both clocks at nearly the same moment.
ClockAnchor Anchor() {
  return {MonotonicNanoseconds(), RealtimeNanoseconds()};
}

// Segments are mapped one by one, so they start at multiples of the page size.
size_t RoundToPages(size_t bytes) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

// Copies everything except checksum and commit. The record was written a few instructions ago, word by word.
// Reads of larger pieces would have to wait until those words have reached the cache.
void CopyBody(const TraceRecord& record, TraceRecord& slot) {
  static_assert(offsetof(TraceRecord, checksum) % sizeof(uint64_t) == 0);
  for (size_t at = 0; at < offsetof(TraceRecord, checksum); at += sizeof(uint64_t)) {
    std::memcpy(reinterpret_cast<char*>(&slot) + at, reinterpret_cast<const char*>(&record) + at,
                sizeof(uint64_t));
    // Without this barrier the compiler would join the words into larger pieces.
    asm volatile("" ::: "memory");
  }
}

// Only one thread at a time stores into a segment; readers may read at any moment.
[[gnu::hot]] Recorder::Slot Store(SegmentHeader& segment, TraceRecord* records, uint64_t mask,
                                  const TraceRecord& record) {
  const uint64_t position = segment.head;
  TraceRecord* const slot = records + (position & mask);
  // Fetches the cache line of a later record, so that storing that record does not wait for memory.
  __builtin_prefetch(records + ((position + kPrefetchedRecords) & mask), /*for writing*/ 1);
  std::atomic_ref commit(slot->commit);
  commit.store(0, std::memory_order_relaxed);
  std::atomic_ref(segment.head).store(position + 1, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_release);
  CopyBody(record, *slot);
  slot->checksum = XXH32(slot, kChecksummedBytes, 0);
  commit.store(kCommitMark, std::memory_order_release);
  return {slot, &segment, position};
}

}  // namespace

Result<std::unique_ptr<Recorder>> Recorder::Open(const RecorderOptions& options) {
  std::unique_ptr<Recorder> recorder(new Recorder());
  DYNAMICCL_CHECK_OK(recorder->CreateFile(options));
  RegisterForkHandlerOnce();
  recorder->key_ = g_next_key.fetch_add(1, std::memory_order_relaxed);
  recorder->generation_ = g_generation.load(std::memory_order_relaxed);
  return recorder;
}

Status Recorder::CreateFile(const RecorderOptions& options) {
  PassJobFailPoint(JobFailPoint::kTraceCreate);
  const uint64_t capacity = std::bit_ceil(std::clamp<uint64_t>(options.records_per_thread, 64, 1 << 24));
  mask_ = capacity - 1;
  const size_t table_bytes = sizeof(SegmentHeader) + kTableRecords * sizeof(TraceRecord);
  DYNAMICCL_TRY(OwnFile file, CreateOwnFile(options.path, O_RDWR));
  path_ = file.path;
  DYNAMICCL_TRY(header_memory_,
                SharedMemory::OfFile(std::move(file), RoundToPages(kTraceHeaderBytes + table_bytes)));
  header_ = reinterpret_cast<TraceHeader*>(header_memory_.data());
  table_.segment = reinterpret_cast<SegmentHeader*>(header_memory_.data() + kTraceHeaderBytes);
  table_.records = reinterpret_cast<TraceRecord*>(table_.segment + 1);
  table_.segment->magic = kSegmentMagic;
  FillHeader(options);
  PassJobFailPoint(JobFailPoint::kTraceHeader);
  return {};
}

// The checksum covers everything before it and is computed last.
void Recorder::FillHeader(const RecorderOptions& options) {
  TraceHeader& header = *header_;
  std::memcpy(header.magic, kTraceMagic, sizeof(kTraceMagic));
  header.version = kTraceVersion;
  header.header_bytes = kTraceHeaderBytes;
  header.record_bytes = sizeof(TraceRecord);
  header.first_segment = header_memory_.size();
  header.records_per_segment = mask_ + 1;
  header.table_records = kTableRecords;
  header.segment_bytes = RoundToPages(sizeof(SegmentHeader) + (mask_ + 1) * sizeof(TraceRecord));
  header.rank = options.rank;
  header.world = options.world;
  header.process_id = ::getpid();
  header.opened = Anchor();
  CopyText(header.host, HostName());
  CopyText(header.library, options.library);
  CopyText(header.writer, "dynamiccl " DYNAMICCL_VERSION);
  header.checksum = XXH3_64bits(&header, offsetof(TraceHeader, checksum));
}

Recorder::~Recorder() {
  Close();
}

bool Recorder::InForkedChild() const {
  return generation_ != g_generation.load(std::memory_order_relaxed);
}

[[gnu::hot]] Recorder::Slot Recorder::Append(const TraceRecord& record) noexcept {
  if (record.kind == static_cast<uint16_t>(RecordKind::kCommunicator) ||
      record.kind == static_cast<uint16_t>(RecordKind::kCommunicatorEnd)) {
    return AppendToTable(record);
  }
  Ring* const ring = ThisThreadsRing();
  if (ring == nullptr) {
    CountLost();
    return {};
  }
  return Store(*ring->segment, ring->records, mask_, record);
}

[[gnu::hot]] void Recorder::Enter(const InsideWords& mark) noexcept {
  Ring* const ring = ThisThreadsRing();
  if (ring == nullptr) return;
  auto* const place = reinterpret_cast<std::byte*>(&ring->segment->inside);
  // The last word holds `what`, so a reader that sees it sees the whole mark.
  for (size_t i = 0; i + 1 < mark.size(); ++i)
    std::memcpy(place + i * sizeof(uint64_t), &mark[i], sizeof(uint64_t));
  auto& last = *reinterpret_cast<uint64_t*>(place + (mark.size() - 1) * sizeof(uint64_t));
  std::atomic_ref(last).store(mark.back(), std::memory_order_release);
}

[[gnu::hot]] void Recorder::Leave() noexcept {
  Ring* const ring = ThisThreadsRing();
  if (ring == nullptr) return;
  std::atomic_ref(ring->segment->inside.what)
      .store(static_cast<uint8_t>(InsideOf::kNothing), std::memory_order_release);
}

Recorder::Slot Recorder::AppendToTable(const TraceRecord& record) noexcept {
  if (InForkedChild()) return {};
  const std::lock_guard lock(mutex_);
  if (table_.segment->head == kTableRecords) {
    CountLost();
    return {};
  }
  return Store(*table_.segment, table_.records, ~uint64_t{0}, record);
}

void Recorder::CountLost() noexcept {
  if (!InForkedChild()) std::atomic_ref(header_->lost).fetch_add(1, std::memory_order_relaxed);
}

uint64_t Recorder::lost() const noexcept {
  return std::atomic_ref(header_->lost).load(std::memory_order_relaxed);
}

void Recorder::SetDuration(const Slot& slot, DurationSource source, int64_t nanoseconds) noexcept {
  if (slot.record == nullptr || InForkedChild()) return;
  const auto head =
      std::atomic_ref(const_cast<uint64_t&>(slot.segment->head)).load(std::memory_order_acquire);
  // The margin of 16 records is needed because the owner may be appending while this thread writes.
  if (head > slot.position + mask_ - 16) return;
  std::atomic_ref(slot.record->duration_ns).store(SaturatedDuration(nanoseconds), std::memory_order_relaxed);
  std::atomic_ref(slot.record->duration_source)
      .store(static_cast<uint8_t>(source), std::memory_order_release);
}

void Recorder::Close() noexcept {
  if (header_ == nullptr || InForkedChild()) return;
  PassJobFailPoint(JobFailPoint::kTraceClose);
  header_->closed_at = Anchor();
  std::atomic_ref(header_->closed).store(1, std::memory_order_release);
}

Recorder::Ring* Recorder::ThisThreadsRing() noexcept {
  if (t_cached.key == key_) return static_cast<Ring*>(t_cached.ring);
  if (InForkedChild()) return nullptr;
  Ring* const ring = FindOrMapRing();
  t_cached = {key_, ring};
  return ring;
}

// Takes over a ring whose thread has ended, so that programs which start a thread for each step do not grow
// the file.
Recorder::Ring* Recorder::FindOrMapRing() noexcept {
  const std::lock_guard lock(mutex_);
  const int64_t thread_id = ThreadId();
  for (uint32_t i = 0; i < n_rings_; ++i) {
    SegmentHeader* const segment = rings_[i].segment;
    if (segment->thread_id != thread_id && !ThreadEnded(segment->thread_id)) continue;
    segment->thread_id = thread_id;
    segment->inside.what = static_cast<uint8_t>(InsideOf::kNothing);
    return &rings_[i];
  }
  if (n_rings_ == kMaxRings || !MapRing(rings_[n_rings_], thread_id)) return nullptr;
  return &rings_[n_rings_++];
}

Status Recorder::MapRing(Ring& ring, int64_t thread_id) {
  PassJobFailPoint(JobFailPoint::kTraceRing);
  const size_t bytes = header_->segment_bytes;
  const size_t offset = header_->first_segment + n_rings_ * bytes;
  DYNAMICCL_TRY(ring.memory, SharedMemory::ExtendFile(header_memory_.fd(), offset, bytes));
  ring.segment = reinterpret_cast<SegmentHeader*>(ring.memory.data());
  ring.records = reinterpret_cast<TraceRecord*>(ring.memory.data() + sizeof(SegmentHeader));
  ring.segment->magic = kSegmentMagic;
  ring.segment->thread_id = thread_id;
  PassJobFailPoint(JobFailPoint::kTraceRingMapped);
  std::atomic_ref(header_->segments).store(n_rings_ + 1, std::memory_order_release);
  return {};
}

}  // namespace dynamiccl
