// SPDX-License-Identifier: Apache-2.0
// Views of FIFOs, checksums, and the writing of LL and LL128 lines. See relay_frame.h.
#include "src/transport/relay_frame.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>

namespace dynamiccl {
namespace {

template <uint64_t kCount>
RelayedSlots View(FifoCounters<kCount>& counters, void* slots, size_t slot_bytes, size_t line_bytes) {
  return {.tail = &counters.tail,
          .head = &counters.head,
          .wire_bytes = counters.wire_bytes.data(),
          .slots = static_cast<std::byte*>(slots),
          .slot_bytes = slot_bytes,
          .count = kCount,
          .line_bytes = line_bytes};
}

}  // namespace

uint64_t ChecksumOf(FrameHeader header, std::span<const std::byte> payload) {
  header.checksum = 0;
  const uint64_t seed = XXH3_64bits(&header, sizeof(header));
  const uint64_t hash = XXH3_64bits_withSeed(payload.data(), payload.size(), seed);
  return hash == 0 ? 1 : hash;
}

RelayedSlots SlotsOf(Fifo& fifo, RelayedProtocol protocol) {
  switch (protocol) {
    case RelayedProtocol::kLl:
      return View(fifo.ll, fifo.lines, sizeof(fifo.lines[0]), sizeof(fifo.lines[0][0]));
    case RelayedProtocol::kLl128:
      return View(fifo.ll128, fifo.lines128, sizeof(fifo.lines128[0]), sizeof(Ll128Line));
    case RelayedProtocol::kSimple:
      break;
  }
  return View(fifo.simple, fifo.slots, kSlotBytes, 0);
}

void StoreLines(const RelayedSlots& slots, uint64_t step, std::span<const std::byte> payload) {
  for (std::byte* line = slots.slot(step).data(); !payload.empty(); line += slots.line_bytes) {
    // The last word of a line contains the line's flag, so it is stored last.
    const size_t data_bytes = slots.line_bytes - sizeof(uint64_t);
    std::memcpy(line, payload.data(), data_bytes);
    uint64_t word = 0;
    std::memcpy(&word, payload.data() + data_bytes, sizeof(word));
    reinterpret_cast<std::atomic<uint64_t>*>(line + data_bytes)->store(word, std::memory_order_release);
    payload = payload.subspan(slots.line_bytes);
  }
}

}  // namespace dynamiccl
