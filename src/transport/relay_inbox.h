// SPDX-License-Identifier: Apache-2.0
// Frames that arrive from one peer: checked, then written into this rank's FIFO from that peer and nowhere
// else.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/transport/relay_frame.h"
#include "src/transport/segment.h"

namespace dynamiccl {

// Used by one thread.
class RelayInbox {
 public:
  struct Place {
    int self = 0;
    int peer = 0;
    std::shared_ptr<Segment> own;     // where the peer's messages go
    std::shared_ptr<Segment> shadow;  // where this rank's outgoing FIFOs to the peer are: its credits
  };
  explicit RelayInbox(Place place);

  // Bytes that are wanted next; never empty.
  std::span<std::byte> Wanted() const { return wanted_; }
  enum class Outcome {
    kMore,       // a part of a frame
    kDelivered,  // the rank may have been waiting for it
    kLeft,       // the peer closes its communicator
    kViolation,  // see problem(); nothing more may be read
  };
  // The first `bytes` of what was wanted have arrived.
  Outcome Arrived(size_t bytes);
  // What the peer did that the grammar does not allow.
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
  std::vector<std::byte> lines_;  // messages of lines, until they are whole
  uint64_t sequence_ = 0;
  std::string problem_;
};

}  // namespace dynamiccl
