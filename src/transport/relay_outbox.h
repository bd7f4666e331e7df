// SPDX-License-Identifier: Apache-2.0
// Frames on their way to one peer: sent as far as the socket takes them. Payloads are not copied.
#pragma once

#include <deque>

#include "src/transport/relay_frame.h"

namespace dynamiccl {

// Used by one thread.
class RelayOutbox {
 public:
  // Does not own the socket.
  RelayOutbox(int socket, bool checksums) : socket_(socket), checksums_(checksums) {}

  // Fills in sequence and checksum. `payload` must stay as it is until Flush has sent it: slots do, as they
  // are written again only after the peer's credit.
  void Add(FrameHeader header, std::span<const std::byte> payload = {});

  enum class Outcome {
    kSent,     // nothing is left
    kBlocked,  // the socket's buffer is full
    kClosed,   // the peer is gone
  };
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
  size_t sent_of_first_ = 0;  // bytes of the first frame that the socket has taken
};

}  // namespace dynamiccl
