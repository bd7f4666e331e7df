// SPDX-License-Identifier: Apache-2.0
// A one-way channel from one rank to one other rank in shared memory, for all three protocols:
//   Simple  4 slots of 128 KiB, announced by a counter
//   LL      8 slots of lines {4 bytes of data, 4 bytes of flag}
//   LL128   8 slots of lines {120 bytes of data, 8 bytes of flag}
// There is one sender and one receiver. The FIFO lies in the receiver's segment and starts as zeros.
// connection.h has the two ends.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace dynamiccl {

// Slots of Simple: the sender fills one, the receiver empties one, and two are on the wire of a shaped link.
inline constexpr uint64_t kSlots = 4;
// 128 KiB: large enough that posting costs less than 1 % of the copy, small enough that sender and receiver
// meet in the second-level cache.
inline constexpr size_t kSlotBytes = size_t{128} << 10;

// LL doubles the bytes, so it is for small messages. It has eight slots of 8 KiB of data, as NCCL has eight
// steps.
inline constexpr uint64_t kLlSlots = 8;
inline constexpr size_t kLlSlotBytes = size_t{8} << 10;
inline constexpr size_t kLlLineData = 4;
inline constexpr size_t kLlSlotLines = kLlSlotBytes / kLlLineData;

// Eight slots as for LL. Each takes 64 KiB with its flags, so together they are as large as Simple's four
// slots.
inline constexpr uint64_t kLl128Slots = 8;
inline constexpr size_t kLl128LineData = 120;
inline constexpr size_t kLl128SlotLines = 512;
inline constexpr size_t kLl128SlotBytes = kLl128SlotLines * kLl128LineData;  // of data

// One line. The sender stores the flag last, and the receiver loads it first.
struct alignas(128) Ll128Line {
  std::array<std::byte, kLl128LineData> data;
  std::atomic<uint64_t> flag;
};
static_assert(sizeof(Ll128Line) == 128);

// The counters of one protocol. Each lies on a cache line of its own because another core writes it.
template <uint64_t kCount>
struct FifoCounters {
  // Slots posted so far; written by the sender.
  alignas(64) std::atomic<uint64_t> tail;
  // Slots released so far; written by the receiver.
  alignas(64) std::atomic<uint64_t> head;
  // When the last byte of the slot arrives over the emulated link, in nanoseconds of CLOCK_MONOTONIC. Valid
  // once `tail` is past the slot.
  alignas(64) std::array<std::atomic<int64_t>, kCount> arrival_ns;
  // Bytes of the message in the slot. Used only in the shadow of a remote peer (remote_relay.h).
  std::array<std::atomic<uint32_t>, kCount> wire_bytes;
};

// All protocols of one direction between two ranks. Pages that a protocol never touches take no memory. A
// word of `lines` has the flag in its upper half and the data in its lower half.
struct Fifo {
  FifoCounters<kSlots> simple;
  FifoCounters<kLlSlots> ll;
  FifoCounters<kLl128Slots> ll128;
  alignas(4096) std::byte slots[kSlots][kSlotBytes];
  alignas(4096) std::atomic<uint64_t> lines[kLlSlots][kLlSlotLines];
  alignas(4096) Ll128Line lines128[kLl128Slots][kLl128SlotLines];
};
static_assert(std::atomic<uint64_t>::is_always_lock_free,
              "counters and LL lines are shared between processes");

}  // namespace dynamiccl
