// SPDX-License-Identifier: Apache-2.0
#include "src/transport/relay_frame.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>

namespace dynamiccl {
namespace {

template <uint64_t kCount>
RelayedSlots View(FifoCounters<kCount>& counters, void* slots, size_t slot_bytes, bool has_lines) {
  return {.tail = &counters.tail,
          .head = &counters.head,
          .wire_bytes = counters.wire_bytes.data(),
          .slots = static_cast<std::byte*>(slots),
          .slot_bytes = slot_bytes,
          .count = kCount,
          .has_lines = has_lines};
}

}  // namespace

uint64_t ChecksumOf(FrameHeader header, std::span<const std::byte> payload) {
  header.checksum = 0;
  const uint64_t seed = XXH3_64bits(&header, sizeof(header));
  const uint64_t hash = XXH3_64bits_withSeed(payload.data(), payload.size(), seed);
  return hash == 0 ? 1 : hash;
}

RelayedSlots SlotsOf(Fifo& fifo, RelayedProtocol protocol) {
  if (protocol == RelayedProtocol::kSimple) return View(fifo.simple, fifo.slots, kSlotBytes, false);
  return View(fifo.ll, fifo.lines, sizeof(fifo.lines[0]), true);
}

void StoreLines(const RelayedSlots& slots, uint64_t step, std::span<const std::byte> payload) {
  auto* const lines = reinterpret_cast<std::atomic<uint64_t>*>(slots.slot(step).data());
  for (size_t i = 0; i < payload.size() / sizeof(uint64_t); ++i) {
    uint64_t line = 0;
    std::memcpy(&line, payload.data() + i * sizeof(line), sizeof(line));
    lines[i].store(line, std::memory_order_relaxed);
  }
}

}  // namespace dynamiccl
