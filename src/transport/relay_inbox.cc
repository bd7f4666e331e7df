// SPDX-License-Identifier: Apache-2.0
// The inbox is a state machine with two states: it waits for a header or for a payload. It checks the header
// as soon as the header is complete, so that a payload has a valid place before its first byte arrives.
#include "src/transport/relay_inbox.h"

#include <fmt/format.h>

#include <utility>

namespace dynamiccl {

RelayInbox::RelayInbox(Place place) : place_(std::move(place)) {
  ExpectHeader();
}

void RelayInbox::ExpectHeader() {
  in_payload_ = false;
  payload_ = {};
  wanted_ = std::as_writable_bytes(std::span(&header_, 1));
}

RelayedSlots RelayInbox::Incoming() const {
  return SlotsOf(place_.own->fifo(place_.peer, header_.channel),
                 static_cast<RelayedProtocol>(header_.protocol));
}

RelayedSlots RelayInbox::Outgoing() const {
  return SlotsOf(place_.shadow->fifo(place_.self, header_.channel),
                 static_cast<RelayedProtocol>(header_.protocol));
}

RelayInbox::Outcome RelayInbox::Violation(std::string problem) {
  problem_ = std::move(problem);
  return Outcome::kViolation;
}

RelayInbox::Outcome RelayInbox::Arrived(size_t bytes) {
  wanted_ = wanted_.subspan(bytes);
  if (!wanted_.empty()) return Outcome::kMore;
  return in_payload_ ? FrameArrived() : HeaderArrived();
}

std::optional<std::string> RelayInbox::CheckHeader() const {
  if (header_.sequence != sequence_) {
    return fmt::format("frame {} came as number {}", sequence_, header_.sequence);
  }
  if (header_.channel >= kFifosPerPeer || header_.protocol >= kRelayedProtocols) {
    return fmt::format("channel {}, protocol {} do not exist", header_.channel, header_.protocol);
  }
  if (header_.type != FrameType::kMessage && header_.payload_bytes != 0) {
    return fmt::format("a frame of type {} has a payload", static_cast<int>(header_.type));
  }
  switch (header_.type) {
    case FrameType::kMessage:
      return CheckMessage();
    case FrameType::kCredit:
      return CheckCredit();
    case FrameType::kCompleted:
    case FrameType::kLeave:
      return {};
  }
  return fmt::format("frame type {} is unknown", static_cast<int>(header_.type));
}

// Accepts only the next message, and only if its slot is free. Only this relay writes `tail`, and only this
// rank writes `head`, so the peer cannot influence where its bytes go.
std::optional<std::string> RelayInbox::CheckMessage() const {
  const RelayedSlots slots = Incoming();
  const uint64_t tail = slots.tail->load(std::memory_order_relaxed);
  if (header_.value != tail) return fmt::format("message {} came as {}", tail, header_.value);
  if (tail - slots.head->load(std::memory_order_acquire) >= slots.count) {
    return fmt::format("message {} came without credit", tail);
  }
  const bool whole_lines = slots.line_bytes == 0 || header_.payload_bytes % slots.line_bytes == 0;
  if (header_.payload_bytes <= slots.slot_bytes && whole_lines) return {};
  return fmt::format("a message of {} bytes for a slot of {}", header_.payload_bytes, slots.slot_bytes);
}

// A credit may release only messages that were posted and not yet released.
std::optional<std::string> RelayInbox::CheckCredit() const {
  const RelayedSlots slots = Outgoing();
  const uint64_t head = slots.head->load(std::memory_order_relaxed);
  const uint64_t tail = slots.tail->load(std::memory_order_acquire);
  if (header_.value >= head && header_.value <= tail) return {};
  return fmt::format("a credit for {} of {} messages, {} of them released", header_.value, tail, head);
}

// A message of slots is received directly into its slot. A receiver may be polling lines, which must appear
// whole, so lines are collected first.
RelayInbox::Outcome RelayInbox::HeaderArrived() {
  if (auto problem = CheckHeader()) return Violation(std::move(*problem));
  ++sequence_;
  if (header_.payload_bytes == 0) return FrameArrived();
  const RelayedSlots slots = Incoming();
  if (slots.line_bytes != 0) lines_.resize(header_.payload_bytes);
  const std::span<std::byte> room = slots.line_bytes != 0 ? std::span(lines_) : slots.slot(header_.value);
  payload_ = room.first(header_.payload_bytes);
  wanted_ = payload_;
  in_payload_ = true;
  return Outcome::kMore;
}

RelayInbox::Outcome RelayInbox::FrameArrived() {
  const FrameHeader header = header_;
  if (header.checksum != 0 && header.checksum != ChecksumOf(header, payload_)) {
    return Violation(fmt::format("the checksum of frame {} does not match", header.sequence));
  }
  switch (header.type) {
    case FrameType::kMessage: {
      const RelayedSlots slots = Incoming();
      if (slots.line_bytes != 0) StoreLines(slots, header.value, payload_);
      slots.tail->store(header.value + 1, std::memory_order_seq_cst);
      break;
    }
    case FrameType::kCredit:
      Outgoing().head->store(header.value, std::memory_order_seq_cst);
      break;
    case FrameType::kCompleted:
      place_.shadow->header().completed_launches.store(header.value, std::memory_order_release);
      break;
    case FrameType::kLeave:
      return Outcome::kLeft;
  }
  ExpectHeader();
  return Outcome::kDelivered;
}

}  // namespace dynamiccl
