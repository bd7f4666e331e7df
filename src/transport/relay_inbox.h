// SPDX-License-Identifier: Apache-2.0
// Reads the frames that arrive from one peer and delivers them. A peer on another host is not trusted: every
// frame is checked before it takes effect, and it can change only this rank's FIFO from that peer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/transport/relay_frame.h"
#include "src/transport/segment.h"

namespace dynamiccl {

// A parser: it says where the next bytes belong, and the relay's receiving thread puts them there. The
// relay's link to the peer owns the object, and only the receiving thread uses it. It allocates only while a
// message of lines is incomplete.
class RelayInbox {
 public:
  // The two ranks and the segments between them.
  struct Place {
    int self = 0;
    int peer = 0;
    std::shared_ptr<Segment> own;  // where the peer's messages go
    std::shared_ptr<Segment>
        shadow;  // holds the FIFOs from this rank to the peer; the peer's credits go here
  };
  explicit RelayInbox(Place place);

  // Returns the memory into which the next bytes must be read; never empty.
  std::span<std::byte> Wanted() const { return wanted_; }
  // Says what the received bytes completed.
  enum class Outcome {
    kMore,       // the frame is not complete yet
    kDelivered,  // a frame took effect; the rank may have been waiting for it
    kLeft,       // the peer closes its communicator
    kViolation,  // the peer broke the grammar, see problem(); read nothing more
  };
  // The caller reports that it has written the first `bytes` bytes of Wanted().
  Outcome Arrived(size_t bytes);
  // Describes how the peer broke the grammar, after a violation.
  const std::string& problem() const { return problem_; }

 private:
  void ExpectHeader();
  std::optional<std::string> CheckHeader() const;
  std::optional<std::string> CheckMessage() const;
  std::optional<std::string> CheckCredit() const;
  Outcome Violation(std::string problem);
  Outcome HeaderArrived();
  Outcome FrameArrived();
  RelayedSlots Incoming() const;
  RelayedSlots Outgoing() const;

  Place place_;
  FrameHeader header_;
  bool in_payload_ = false;
  std::span<std::byte> wanted_;
  std::span<std::byte> payload_;
  std::vector<std::byte> lines_;  // a message of lines, until it is complete
  uint64_t sequence_ = 0;
  std::string problem_;
};

}  // namespace dynamiccl
