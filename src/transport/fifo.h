// SPDX-License-Identifier: Apache-2.0
// A one-way channel in shared memory from one rank to another one, with a part for each of the three
// protocols:
//   Simple  4 slots of 128 KiB, each announced by a counter
//   LL      8 slots of lines {4 bytes of data, 4 bytes of flag}
//   LL128   8 slots of lines {120 bytes of data, 8 bytes of flag}
// There is one sender and one receiver. The FIFO lies in the receiver's segment and starts as zeros. Class
// SendEnd and class ReceiveEnd in connection.h are its two ends.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace dynamiccl {

// Slots of protocol Simple: the sender fills one, the receiver empties one, and two are in flight on an
// emulated link.
inline constexpr uint64_t kSlots = 4;
// In bytes. 128 KiB are enough that posting costs less than 1 % of the copy, and few enough that the data
// stay in the second-level cache between sender and receiver.
inline constexpr size_t kSlotBytes = size_t{128} << 10;

// Slots of protocol LL: eight, as NCCL has eight steps. A slot holds 8 KiB of data. LL sends as many bytes of
// flags as of data, so it is for small messages.
inline constexpr uint64_t kLlSlots = 8;
inline constexpr size_t kLlSlotBytes = size_t{8} << 10;
inline constexpr size_t kLlLineData = 4;
inline constexpr size_t kLlSlotLines = kLlSlotBytes / kLlLineData;

// Slots of protocol LL128: eight, as for LL. A slot takes 64 KiB with its flags, so all eight together are as
// large as the four slots of Simple.
inline constexpr uint64_t kLl128Slots = 8;
inline constexpr size_t kLl128LineData = 120;
inline constexpr size_t kLl128SlotLines = 512;
inline constexpr size_t kLl128SlotBytes = kLl128SlotLines * kLl128LineData;  // bytes of data in a slot

// One line of LL128. The sender stores the flag last, and the receiver loads the flag first.
struct alignas(128) Ll128Line {
  std::array<std::byte, kLl128LineData> data;
  std::atomic<uint64_t> flag;
};
static_assert(sizeof(Ll128Line) == 128);

// The counters of one protocol. Each counter lies on a cache line of its own because another core writes it.
template <uint64_t kCount>
struct FifoCounters {
  // Number of messages that the sender has posted so far. Only the sender writes it.
  alignas(64) std::atomic<uint64_t> tail;
  // Number of messages that the receiver has released so far. Only the receiver writes it.
  alignas(64) std::atomic<uint64_t> head;
  // Times at which the last byte of each slot arrives over the emulated link, in nanoseconds of
  // CLOCK_MONOTONIC. Valid once `tail` is larger than the slot's message number.
  alignas(64) std::array<std::atomic<int64_t>, kCount> arrival_ns;
  // Number of bytes of the message in each slot. Used only in the shadow segment of a remote peer
  // (remote_relay.h).
  std::array<std::atomic<uint32_t>, kCount> wire_bytes;
};

// All protocols of one direction between two ranks. Pages that no protocol touches take no memory. A word of
// `lines` has the flag in its upper half and the data in its lower half.
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
