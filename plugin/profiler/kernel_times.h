// SPDX-License-Identifier: Apache-2.0
// From a profiler's events to the duration of a collective: first start to last stop over the channels of its
// kernel. Events come from several threads, and those of the kernel after the collective's own has ended (its
// end means "enqueued"); nothing bounds how late. So events are numbered cells of a fixed ring, and a handle
// that outlived its cell says nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "plugin/profiler/time_statistics.h"
#include "plugin/runtime/times_report.h"
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

// To whom a collective's time is told beside the statistics.
struct ToldTo {
  uint64_t call_number = 0;
  std::shared_ptr<TimesReport> report;  // null: nobody
};

class KernelTimes {
 public:
  explicit KernelTimes(TimeStatistics& statistics) : statistics_(statistics) {}

  // Handles are what NCCL gets. Null: not timed. Any thread, in any order.
  void* BeginCollective(const TimedKey& key, int channels, KernelClock clock, ToldTo told_to = {});
  // `stamp` is used with KernelClock::kStamps. Null without a parent.
  void* BeginChannel(void* collective, int64_t stamp);
  void StopStamp(void* channel, int64_t stamp);
  void End(void* collective_or_channel);
  // Where the collective's call is recorded; its duration is added there, now or when it is known.
  void Attach(void* collective, Recorder& recorder, const Recorder::Slot& record);

  // Whether a handle is a channel's.
  static bool IsChannel(const void* handle);

  uint64_t begun() const { return begun_.load(std::memory_order_relaxed); }
  uint64_t finished() const { return finished_.load(std::memory_order_relaxed); }

 private:
  // In flight at a time: a window's two groups on every communicator of a process, many times over.
  static constexpr size_t kCells = 512;
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

  Cell* CellOf(void* handle);
  void Finish(Cell& cell);
  static void Deliver(Cell& cell);

  TimeStatistics& statistics_;
  std::atomic<uint64_t> begun_{0};
  std::atomic<uint64_t> finished_{0};
  std::array<Cell, kCells> cells_;
};

}  // namespace dynamiccl
