// SPDX-License-Identifier: Apache-2.0
// From a profiler's events to the duration of a collective: first start to last stop over the channels of its
// kernel. Events come from several threads. Those of the kernel come after the collective's own has ended,
// which means "enqueued", and nothing bounds how late. So events are numbered cells of a fixed ring, and a
// handle that outlived its cell is ignored.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "plugin/times/time_statistics.h"
#include "plugin/times/times_report.h"
#include "traces/record/recorder.h"

namespace dynamiccl {

// How a version of NCCL's profiler interface tells when a kernel's channel ran.
enum class KernelClock : uint8_t {
  kNone,     // not at all
  kArrival,  // by events without a stamp: when they reach us, which NCCL's proxy thread delays
  kStamps,   // by the GPU's clock, in nanoseconds
};

struct ProfilerVersion {
  int version;
  const char* first_release;
  KernelClock clock;
};
std::span<const ProfilerVersion> ProfilerVersions();
KernelClock ClockOf(int version);

// Who gets a collective's time beside the statistics: the leader's guard, through the communicator's report.
struct ToldTo {
  uint64_t call_number = 0;
  std::shared_ptr<TimesReport> report;  // null: nobody
};

// Owned by CollectiveTimes; any thread, each cell has a lock of its own.
// A collective whose events are incomplete, out of order or overtaken by 512 others has no duration.
class KernelTimes {
 public:
  explicit KernelTimes(TimeStatistics& statistics) : statistics_(statistics) {}

  // Begins a collective that will run on so many channels. Returns the handle that NCCL gets; null: not
  // timed.
  void* BeginCollective(const TimedKey& key, int channels, KernelClock clock, ToldTo told_to = {});
  // One of its channels starts. `stamp` is in nanoseconds of the GPU's clock, and is used with
  // KernelClock::kStamps only. Null without a parent, or where the parent's cell has been overtaken.
  void* BeginChannel(void* collective, int64_t stamp);
  // The GPU's clock when the channel stopped.
  void StopStamp(void* channel, int64_t stamp);
  // The event is over. The last channel's end completes the collective; its own end means nothing.
  void End(void* collective_or_channel);
  // The collective's call is recorded there. Its duration is added to the record, now or when it is known.
  void Attach(void* collective, Recorder& recorder, const Recorder::Slot& record);

  // Whether a handle is a channel's.
  static bool IsChannel(const void* handle);

  uint64_t begun() const { return begun_.load(std::memory_order_relaxed); }
  uint64_t finished() const { return finished_.load(std::memory_order_relaxed); }

 private:
  // Collectives in flight at a time: a window's two groups on every communicator of a process, many times
  // over.
  static constexpr size_t kCells = 512;
  // One collective. Its generation tells it from earlier ones in the same cell.
  struct Cell {
    std::mutex mutex;
    uint64_t generation = 0;
    TimedKey key;
    ToldTo told_to;
    KernelClock clock = KernelClock::kNone;
    int channels = 0;  // that will run; 0: unknown, never finished
    int ended = 0;
    int64_t first_ns = 0;
    int64_t last_ns = 0;
    int64_t duration_ns = -1;
    Recorder* recorder = nullptr;
    Recorder::Slot record;
  };

  // The cell of a handle; null without one. The caller locks it and compares the generation.
  Cell* CellOf(void* handle);
  // All channels have ended: computes the duration and hands it out.
  void Finish(Cell& cell);
  // Adds the duration to the record, once both are known.
  static void Deliver(Cell& cell);

  TimeStatistics& statistics_;
  std::atomic<uint64_t> begun_{0};
  std::atomic<uint64_t> finished_{0};
  std::array<Cell, kCells> cells_;
};

}  // namespace dynamiccl
