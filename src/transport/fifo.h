// SPDX-License-Identifier: Apache-2.0
// A one-way channel between two ranks in shared memory: slots with credits (Simple), lines of {4 data, 4
// flag} (LL) and lines of {120 data, 8 flag} (LL128). Single sender, single receiver. Everything in it starts
// as zero.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace dynamiccl {

// Slots of a FIFO: enough that a sender fills one while the receiver empties another and two are on a shaped
// wire.
inline constexpr uint64_t kSlots = 4;
// 128 KiB: large enough that posting costs under 1 % of the copy, small enough that sender and receiver meet
// in L2.
inline constexpr size_t kSlotBytes = size_t{128} << 10;

// LL doubles the bytes, so it is for small messages; eight slots of 8 KiB data as NCCL's eight steps.
inline constexpr uint64_t kLlSlots = 8;
inline constexpr size_t kLlSlotBytes = size_t{8} << 10;
inline constexpr size_t kLlLineData = 4;
inline constexpr size_t kLlSlotLines = kLlSlotBytes / kLlLineData;

// LL128 has eight slots as LL has. Of 64 KiB, flags included: together they are Simple's four slots of 128.
inline constexpr uint64_t kLl128Slots = 8;
inline constexpr size_t kLl128LineData = 120;
inline constexpr size_t kLl128SlotLines = 512;
inline constexpr size_t kLl128SlotBytes = kLl128SlotLines * kLl128LineData;  // of data

struct alignas(128) Ll128Line {
  std::array<std::byte, kLl128LineData> data;
  std::atomic<uint64_t> flag;  // stored last, loaded first
};
static_assert(sizeof(Ll128Line) == 128);

// What is posted and what is released, each on a cache line of its own because another core writes it.
template <uint64_t kCount>
struct FifoCounters {
  alignas(64) std::atomic<uint64_t> tail;  // slots posted; written by the sender
  alignas(64) std::atomic<uint64_t> head;  // slots released; written by the receiver
  // When the slot's last byte arrives over the emulated link, CLOCK_MONOTONIC; valid once tail is past the
  // slot.
  alignas(64) std::array<std::atomic<int64_t>, kCount> arrival_ns;
  // Bytes of the message in the slot; only in the shadow of a remote peer (remote_relay.h).
  std::array<std::atomic<uint32_t>, kCount> wire_bytes;
};

struct Fifo {
  FifoCounters<kSlots> simple;
  FifoCounters<kLlSlots> ll;
  FifoCounters<kLl128Slots> ll128;
  alignas(4096) std::byte slots[kSlots][kSlotBytes];
  alignas(
      4096) std::atomic<uint64_t> lines[kLlSlots][kLlSlotLines];  // flag in the upper half, data in the lower
  alignas(4096) Ll128Line lines128[kLl128Slots][kLl128SlotLines];
};
static_assert(std::atomic<uint64_t>::is_always_lock_free,
              "counters and LL lines are shared between processes");

}  // namespace dynamiccl
