// SPDX-License-Identifier: Apache-2.0
// Computes the duration of a collective from a profiler's events: from the first start to the last stop over
// the channels of its kernel. Events come from several threads. The end of the collective's own event only
// means "enqueued". The events of its kernel come later, and NCCL sets no limit on how much later. So each
// collective gets a numbered cell of a fixed ring. A handle whose cell has been used again is ignored.
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

// Names the way in which a version of NCCL's profiler interface reports when a kernel's channel ran.
enum class KernelClock : uint8_t {
  kNone,     // not at all
  kArrival,  // by events without a stamp: the time of their arrival here, which NCCL's proxy thread delays
  kStamps,   // by the GPU's clock, in nanoseconds
};

// One version of NCCL's profiler interface.
struct ProfilerVersion {
  int version;
  const char* first_release;
  KernelClock clock;
  // If true, NVIDIA's library with this version reports the stamps of other kernels, unless every call of a
  // communicator is profiled. This was seen with 2.32.3 on an H200 (docs/results/gpu.md). Releases up to
  // 2.30.7 also count calls that are not profiled, so their stamps are right.
  bool needs_every_call;
};
std::span<const ProfilerVersion> ProfilerVersions();
KernelClock ClockOf(int version);
bool NeedsEveryCall(int version);

// Names who gets a collective's time besides the statistics: the leader's guard, through the report of the
// communicator.
struct ToldTo {
  uint64_t call_number = 0;
  std::shared_ptr<TimesReport> report;  // null: nobody
};

// Owned by CollectiveTimes; any thread, as each cell has its own lock. A collective has no duration if its
// events are incomplete or out of order, or if 512 others have begun after it.
class KernelTimes {
 public:
  explicit KernelTimes(TimeStatistics& statistics) : statistics_(statistics) {}

  // Begins a collective that will run on `channels` channels. Returns the handle for NCCL; null: not timed.
  void* BeginCollective(const TimedKey& key, int channels, KernelClock clock, ToldTo told_to = {});
  // One of the collective's channels starts. `stamp` is the GPU's clock in nanoseconds, used only with
  // KernelClock::kStamps. Returns null without a collective, or if its cell has been reused.
  void* BeginChannel(void* collective, int64_t stamp);
  // `stamp` is the GPU's clock when the channel stopped.
  void StopStamp(void* channel, int64_t stamp);
  // An event ends. The end of the last channel completes the collective; the end of the collective's own
  // event has no effect.
  void End(void* collective_or_channel);
  // Sets the trace record of the collective's call. The duration is added to that record now, or once the
  // duration is known.
  void Attach(void* collective, Recorder& recorder, const Recorder::Slot& record);

  // Returns true if the handle is that of a channel.
  static bool IsChannel(const void* handle);

  uint64_t begun() const { return begun_.load(std::memory_order_relaxed); }
  uint64_t finished() const { return finished_.load(std::memory_order_relaxed); }

 private:
  // Collectives in flight at the same time: many times the two groups of a window on every communicator of a
  // process.
  static constexpr size_t kCells = 512;
  // One collective. The generation distinguishes it from earlier ones in the same cell.
  struct Cell {
    std::mutex mutex;
    uint64_t generation = 0;
    TimedKey key;
    ToldTo told_to;
    KernelClock clock = KernelClock::kNone;
    int channels = 0;  // channels that will run; 0: unknown, so the collective is never finished
    int ended = 0;
    int64_t first_ns = 0;
    int64_t last_ns = 0;
    int64_t duration_ns = -1;
    Recorder* recorder = nullptr;
    Recorder::Slot record;
  };

  // Returns the cell of a handle, or null. The caller locks the cell and compares the generation.
  Cell* CellOf(void* handle);
  // Computes the duration after all channels have ended, and distributes it.
  void Finish(Cell& cell);
  // Adds the duration to the record, once both are known.
  static void Deliver(Cell& cell);

  TimeStatistics& statistics_;
  std::atomic<uint64_t> begun_{0};
  std::atomic<uint64_t> finished_{0};
  std::array<Cell, kCells> cells_;
};

}  // namespace dynamiccl
