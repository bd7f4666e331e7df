// SPDX-License-Identifier: Apache-2.0
// Sends several frames with one sendmsg(2) and remembers how much of a frame has been sent.
#include "src/transport/relay_outbox.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace dynamiccl {
namespace {

// Number of frames that one system call sends. A FIFO has 4 to 8 slots, so more frames are rarely pending.
constexpr size_t kFramesPerCall = 16;

}  // namespace

void RelayOutbox::Add(FrameHeader header, std::span<const std::byte> payload) {
  header.payload_bytes = static_cast<uint32_t>(payload.size());
  header.sequence = sequence_++;
  if (checksums_) header.checksum = ChecksumOf(header, payload);
  pending_.push_back({header, payload});
}

RelayOutbox::Outcome RelayOutbox::Flush() {
  while (!pending_.empty()) {
    std::array<iovec, 2 * kFramesPerCall> parts;
    size_t count = 0;
    size_t skip = sent_of_first_;
    for (size_t i = 0; i < std::min(pending_.size(), kFramesPerCall); ++i) {
      const Pending& frame = pending_[i];
      const std::span<const std::byte> pieces[] = {std::as_bytes(std::span(&frame.header, 1)), frame.payload};
      for (std::span<const std::byte> piece : pieces) {
        const size_t skipped = std::min(skip, piece.size());
        skip -= skipped;
        piece = piece.subspan(skipped);
        if (!piece.empty()) parts[count++] = {const_cast<std::byte*>(piece.data()), piece.size()};
      }
    }
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    const ssize_t sent = ::sendmsg(socket_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      Drop(static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      return Outcome::kBlocked;
    } else if (errno != EINTR) {
      return Outcome::kClosed;
    }
  }
  return Outcome::kSent;
}

// Records that `bytes` more bytes were sent, and removes the frames that are now sent completely.
void RelayOutbox::Drop(size_t bytes) {
  sent_of_first_ += bytes;
  while (!pending_.empty()) {
    const size_t size = sizeof(FrameHeader) + pending_.front().payload.size();
    if (sent_of_first_ < size) return;
    sent_of_first_ -= size;
    pending_.pop_front();
  }
}

}  // namespace dynamiccl
