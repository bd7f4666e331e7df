// SPDX-License-Identifier: Apache-2.0
#include "plugin/times/kernel_times.h"

#include <algorithm>
#include <utility>

#include "src/base/clock.h"

namespace dynamiccl {
namespace {

// Versions of NCCL's profiler interface, the first release with each, and the clock that it provides.
constexpr ProfilerVersion kVersions[] = {
    {1, "2.23", KernelClock::kNone, false},    {2, "2.24", KernelClock::kNone, false},
    {3, "2.26", KernelClock::kArrival, false}, {4, "2.27", KernelClock::kStamps, false},
    {5, "2.28", KernelClock::kStamps, false},  {6, "2.29", KernelClock::kStamps, false},
    {7, "2.31", KernelClock::kStamps, true},
};

// A handle is a number made of generation, cell and kind. It is never null, because a kind is at least 1.
enum class HandleKind : uint64_t { kCollective = 1, kChannel = 2 };
constexpr int kCellBits = 9;
constexpr int kKindBits = 2;

void* HandleOf(uint64_t generation, size_t cell, HandleKind kind) {
  return reinterpret_cast<void*>((generation << kCellBits | cell) << kKindBits | static_cast<uint64_t>(kind));
}
uint64_t Number(const void* handle) {
  return reinterpret_cast<uint64_t>(handle);
}
HandleKind KindOf(const void* handle) {
  return static_cast<HandleKind>(Number(handle) & ((1u << kKindBits) - 1));
}
size_t CellIndexOf(const void* handle) {
  return Number(handle) >> kKindBits & ((1u << kCellBits) - 1);
}
uint64_t GenerationOf(const void* handle) {
  return Number(handle) >> (kKindBits + kCellBits);
}

}  // namespace

std::span<const ProfilerVersion> ProfilerVersions() {
  return kVersions;
}

KernelClock ClockOf(int version) {
  return version >= 1 && version <= 7 ? kVersions[version - 1].clock : KernelClock::kNone;
}

bool NeedsEveryCall(int version) {
  return version >= 1 && version <= 7 && kVersions[version - 1].needs_every_call;
}

void* KernelTimes::BeginCollective(const TimedKey& key, int channels, KernelClock clock, ToldTo told_to) {
  static_assert(kCells == 1u << kCellBits);
  if (clock == KernelClock::kNone) return nullptr;
  const uint64_t number = begun_.fetch_add(1, std::memory_order_relaxed);
  const size_t index = number % kCells;
  Cell& cell = cells_[index];
  const std::lock_guard lock(cell.mutex);
  cell.generation = number / kCells + 1;
  cell.key = key;
  cell.told_to = std::move(told_to);
  cell.clock = clock;
  cell.channels = channels;
  cell.ended = 0;
  cell.first_ns = cell.last_ns = 0;
  cell.duration_ns = -1;
  cell.recorder = nullptr;
  return HandleOf(cell.generation, index, HandleKind::kCollective);
}

KernelTimes::Cell* KernelTimes::CellOf(void* handle) {
  return handle == nullptr ? nullptr : &cells_[CellIndexOf(handle)];
}

void* KernelTimes::BeginChannel(void* collective, int64_t stamp) {
  Cell* const cell = CellOf(collective);
  if (cell == nullptr) return nullptr;
  const std::lock_guard lock(cell->mutex);
  if (cell->generation != GenerationOf(collective)) return nullptr;
  const int64_t now = cell->clock == KernelClock::kStamps ? stamp : MonotonicNanoseconds();
  cell->first_ns = cell->first_ns == 0 ? now : std::min(cell->first_ns, now);
  return HandleOf(cell->generation, CellIndexOf(collective), HandleKind::kChannel);
}

bool KernelTimes::IsChannel(const void* handle) {
  return handle != nullptr && KindOf(handle) == HandleKind::kChannel;
}

void KernelTimes::StopStamp(void* channel, int64_t stamp) {
  Cell* const cell = CellOf(channel);
  if (cell == nullptr || KindOf(channel) != HandleKind::kChannel) return;
  const std::lock_guard lock(cell->mutex);
  if (cell->generation != GenerationOf(channel) || cell->clock != KernelClock::kStamps) return;
  cell->last_ns = std::max(cell->last_ns, stamp);
}

void KernelTimes::End(void* collective_or_channel) {
  Cell* const cell = CellOf(collective_or_channel);
  if (cell == nullptr || KindOf(collective_or_channel) != HandleKind::kChannel) return;
  const std::lock_guard lock(cell->mutex);
  if (cell->generation != GenerationOf(collective_or_channel)) return;
  if (cell->clock == KernelClock::kArrival) cell->last_ns = MonotonicNanoseconds();
  if (++cell->ended == cell->channels) Finish(*cell);
}

void KernelTimes::Finish(Cell& cell) {
  // A channel had no stamp, or the clock was set back: there is no duration.
  if (cell.last_ns <= cell.first_ns) return;
  cell.duration_ns = cell.last_ns - cell.first_ns;
  statistics_.Add(cell.key, cell.duration_ns);
  finished_.fetch_add(1, std::memory_order_relaxed);
  Deliver(cell);
  const ToldTo told_to = std::exchange(cell.told_to, {});
  if (told_to.report && told_to.report->enabled())
    told_to.report->Add({told_to.call_number, cell.key.collective, cell.duration_ns});
}

void KernelTimes::Attach(void* collective, Recorder& recorder, const Recorder::Slot& record) {
  Cell* const cell = CellOf(collective);
  if (cell == nullptr) return;
  const std::lock_guard lock(cell->mutex);
  if (cell->generation != GenerationOf(collective)) return;
  cell->recorder = &recorder;
  cell->record = record;
  Deliver(*cell);
}

void KernelTimes::Deliver(Cell& cell) {
  if (cell.recorder == nullptr || cell.duration_ns < 0) return;
  const auto source =
      cell.clock == KernelClock::kStamps ? DurationSource::kKernelStamps : DurationSource::kKernelArrival;
  cell.recorder->SetDuration(cell.record, source, cell.duration_ns);
}

}  // namespace dynamiccl
