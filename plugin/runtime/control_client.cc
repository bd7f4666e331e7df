// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/control_client.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "plugin/runtime/socket.h"
#include "src/base/clock.h"

namespace dynamiccl {
namespace {

// Between attempts to reach a leader that is not there yet.
constexpr auto kRetry = std::chrono::milliseconds(5);

// The whole answer, empty when the connection ended without one.
std::vector<std::byte> ReceiveMessage(int fd) {
  std::vector<std::byte> received;
  std::byte buffer[kMostMessageBytes];
  while (true) {
    pollfd waiting{fd, POLLIN, 0};
    if (::poll(&waiting, 1, -1) < 0 && errno != EINTR) return {};
    const ssize_t got = ::recv(fd, buffer, sizeof(buffer), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) return {};
    received.insert(received.end(), buffer, buffer + got);
    if (received.size() < kMessageHeaderBytes) continue;
    const auto total = MessageBytes(received);
    if (!total || received.size() > *total) return {};
    if (received.size() == *total) return received;
  }
}

}  // namespace

Result<Verdict> PledgeAndWait(const MeetingPoint& meeting, const PledgeMessage& pledge, int connect_ms) {
  const std::vector<std::byte> message = EncodePledge(pledge, meeting.secret);
  const int64_t deadline = MonotonicNanoseconds() + int64_t{connect_ms} * 1'000'000;
  while (true) {
    const auto left_ms = static_cast<int>((deadline - MonotonicNanoseconds()) / 1'000'000);
    auto fd = Connect(meeting.address, meeting.port, std::max(left_ms, 1));
    if (fd && SendAll(fd->get(), message)) {
      const std::vector<std::byte> answer = ReceiveMessage(fd->get());
      if (!answer.empty()) return DecodeVerdict(answer, pledge.communicator, meeting.secret);
    }
    if (MonotonicNanoseconds() >= deadline) {
      return MakeError(ErrorKind::kUnavailable, "no answer from {}:{}", meeting.address, meeting.port);
    }
    std::this_thread::sleep_for(kRetry);
  }
}

Status PledgeAndLeave(const MeetingPoint& meeting, const PledgeMessage& pledge, int connect_ms) {
  DYNAMICCL_TRY(const UniqueFd fd, Connect(meeting.address, meeting.port, connect_ms));
  return SendAll(fd.get(), EncodePledge(pledge, meeting.secret));
}

}  // namespace dynamiccl
