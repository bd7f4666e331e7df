// SPDX-License-Identifier: Apache-2.0
// Frames that the relays on two hosts send each other: a fixed header and a payload.
// docs/formats/host_relay.md has the grammar.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "src/transport/fifo.h"

namespace dynamiccl {

// The comment of each type says what the header's `value` means.
enum class FrameType : uint8_t {
  kMessage = 1,    // value: the message's step in its FIFO; the payload is the posted data
  kCredit = 2,     // value: number of messages released so far
  kCompleted = 3,  // value: number of collective launches that the sender has completed
  kLeave = 4,      // the sender closes its communicator; it sends nothing more
};

// The header has 32 bytes on the wire, little-endian, in the order of the members.
struct FrameHeader {
  uint32_t payload_bytes = 0;
  FrameType type = FrameType::kMessage;
  uint8_t protocol = 0;  // RelayedProtocol
  uint16_t channel = 0;
  uint64_t sequence = 0;  // number of the frame on its connection, from 0
  uint64_t value = 0;
  uint64_t checksum = 0;  // XXH3-64 of the header (with checksum 0) and the payload; 0: not computed
};
static_assert(sizeof(FrameHeader) == 32);

// Returns the checksum of a frame. It is never 0, which stands for "not computed".
uint64_t ChecksumOf(FrameHeader header, std::span<const std::byte> payload);

enum class RelayedProtocol : uint8_t { kSimple = 0, kLl = 1, kLl128 = 2 };
inline constexpr size_t kRelayedProtocols = 3;

// A view of one protocol's part of a FIFO. The number of slots is a value here and not a template argument.
// The pointers point into the FIFO.
struct RelayedSlots {
  std::atomic<uint64_t>* tail = nullptr;
  std::atomic<uint64_t>* head = nullptr;
  const std::atomic<uint32_t>* wire_bytes = nullptr;  // by slot: bytes of the message in the slot
  std::byte* slots = nullptr;
  size_t slot_bytes = 0;
  uint64_t count = 0;
  size_t line_bytes = 0;  // not 0: the receiver polls the slot itself, so lines must appear whole

  std::span<std::byte> slot(uint64_t step) const { return {slots + step % count * slot_bytes, slot_bytes}; }
};
// Returns a view of one protocol of `fifo`.
RelayedSlots SlotsOf(Fifo& fifo, RelayedProtocol protocol);

// Writes a message of LL or LL128 lines into a slot that the receiver may be polling. It writes a line of LL
// in one store, and the data of a line of LL128 before the flag.
void StoreLines(const RelayedSlots& slots, uint64_t step, std::span<const std::byte> payload);

}  // namespace dynamiccl
