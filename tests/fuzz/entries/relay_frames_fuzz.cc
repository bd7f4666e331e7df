// SPDX-License-Identifier: Apache-2.0
// Handles frames from a rank on another host. Input, repeated: {u8 options, u8 type, u8 protocol, u16
// channel, u16 length, u64 value, bytes}. Bit 0 of options: the frame has the expected number; bit 1: the
// checksum is right; bit 2: `value` is small, as real counters are.
#include <sys/mman.h>

#include <cstring>

#include "src/transport/relay_inbox.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using namespace dynamiccl;

// Two segments that are made once. Reset only clears their counters.
struct Segments {
  std::shared_ptr<Segment> own = *Segment::Create(2);
  std::shared_ptr<Segment> shadow = *Segment::Create(2);

  void Reset() const {
    for (const Segment* segment : {own.get(), shadow.get()}) {
      for (int rank = 0; rank < 2; ++rank) {
        for (int channel = 0; channel < kFifosPerPeer; ++channel) {
          Fifo& fifo = segment->fifo(rank, channel);
          std::memset(static_cast<void*>(&fifo.simple), 0, sizeof(fifo.simple));
          std::memset(static_cast<void*>(&fifo.ll), 0, sizeof(fifo.ll));
          std::memset(static_cast<void*>(&fifo.ll128), 0, sizeof(fifo.ll128));
        }
      }
    }
  }
};

std::vector<std::byte> NextFrame(ByteReader& input, uint64_t sequence) {
  FrameHeader header{};
  const auto options = input.Get<uint8_t>();
  header.type = static_cast<FrameType>(input.Get<uint8_t>());
  header.protocol = input.Get<uint8_t>();
  header.channel = input.Get<uint16_t>();
  header.payload_bytes = input.Get<uint16_t>();
  header.value = input.Get<uint64_t>();
  if ((options & 4) != 0) header.value %= 8;
  header.sequence = (options & 1) != 0 ? sequence : header.value;
  const auto payload = input.GetBytes(std::min<size_t>(header.payload_bytes, input.remaining()));
  std::vector<std::byte> whole(payload.begin(), payload.end());
  whole.resize(header.payload_bytes);
  if ((options & 2) != 0) header.checksum = ChecksumOf(header, whole);
  const auto head = std::as_bytes(std::span(&header, 1));
  whole.insert(whole.begin(), head.begin(), head.end());
  return whole;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Segments segments;
  segments.Reset();
  RelayInbox inbox({.self = 0, .peer = 1, .own = segments.own, .shadow = segments.shadow});
  ByteReader input(fuzz::BytesOf(data, size));
  for (uint64_t sequence = 0; input.ok() && input.remaining() > 0; ++sequence) {
    const std::vector<std::byte> frame = NextFrame(input, sequence);
    for (std::span<const std::byte> left = frame; !left.empty();) {
      const std::span<std::byte> wanted = inbox.Wanted();
      const size_t bytes = std::min(wanted.size(), left.size());
      fuzz::Require(bytes > 0, "something is wanted next");
      std::memcpy(wanted.data(), left.data(), bytes);
      left = left.subspan(bytes);
      const auto outcome = inbox.Arrived(bytes);
      if (outcome == RelayInbox::Outcome::kViolation || outcome == RelayInbox::Outcome::kLeft) return 0;
    }
  }
  return 0;
}
