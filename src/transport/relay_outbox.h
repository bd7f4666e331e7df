// SPDX-License-Identifier: Apache-2.0
// Queues frames for one peer and sends as much as the socket takes. Payloads are not copied.
#pragma once

#include <deque>

#include "src/transport/relay_frame.h"

namespace dynamiccl {

// A queue of frames. Only the relay's sending thread fills, flushes and uses it. It does not own the socket.
class RelayOutbox {
 public:
  // `checksums` says whether each frame carries a checksum.
  RelayOutbox(int socket, bool checksums) : socket_(socket), checksums_(checksums) {}

  // Queues a frame and fills in its size, sequence number and checksum. `payload` must stay unchanged until
  // Flush has sent it. Slots of a FIFO do: they are written again only after the peer's credit.
  void Add(FrameHeader header, std::span<const std::byte> payload = {});

  enum class Outcome {
    kSent,     // nothing is left
    kBlocked,  // the socket's buffer is full
    kClosed,   // the peer is gone
  };
  // Sends queued frames until none is left or the socket takes no more. It never blocks.
  Outcome Flush();

 private:
  struct Pending {
    FrameHeader header;
    std::span<const std::byte> payload;
  };
  void Drop(size_t bytes);

  int socket_;
  bool checksums_;
  uint64_t sequence_ = 0;
  std::deque<Pending> pending_;
  size_t sent_of_first_ = 0;  // bytes of the first frame that the socket has already taken
};

}  // namespace dynamiccl
