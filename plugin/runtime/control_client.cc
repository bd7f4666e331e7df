// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/control_client.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "plugin/runtime/socket.h"
#include "src/base/clock.h"
#include "src/base/job_fail_point.h"
#include "src/decision/voting_member.h"

namespace dynamiccl {
namespace {

// Pause between attempts to reach a leader that is not there yet: it usually starts within milliseconds.
constexpr auto kRetry = std::chrono::milliseconds(5);

int MillisecondsUntil(int64_t deadline_ns) {
  const int64_t left_ns = deadline_ns - MonotonicNanoseconds();
  return left_ns <= 0 ? 0 : static_cast<int>(left_ns / 1'000'000 + 1);
}

// Receives the whole answer; returns an empty vector if the connection or the time ends first.
std::vector<std::byte> ReceiveMessage(int fd, int64_t deadline_ns) {
  std::vector<std::byte> received;
  std::byte buffer[kMaxMessageBytes];
  while (MonotonicNanoseconds() < deadline_ns) {
    pollfd waiting{fd, POLLIN, 0};
    if (::poll(&waiting, 1, MillisecondsUntil(deadline_ns)) < 0 && errno != EINTR) return {};
    const ssize_t got = ::recv(fd, buffer, sizeof(buffer), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) return {};
    received.insert(received.end(), buffer, buffer + got);
    if (received.size() < kMessageHeaderBytes) continue;
    const auto total = MessageBytes(received);
    if (!total || received.size() > *total) return {};
    if (received.size() == *total) return received;
  }
  return {};
}

}  // namespace

Result<Verdict> PledgeAndWait(const RendezvousPoint& rendezvous, const PledgeMessage& pledge, int leader_ms) {
  const std::vector<std::byte> message = EncodePledge(pledge, rendezvous.secret);
  const int64_t leader_ns = int64_t{leader_ms} * 1'000'000;
  PassJobFailPoint(JobFailPoint::kAttestBegin);
  int64_t deadline = MonotonicNanoseconds() + leader_ns;
  bool sent = false;
  do {
    auto fd = Connect(rendezvous.address, rendezvous.port, std::max(MillisecondsUntil(deadline), 1));
    if (fd && SendAll(fd->get(), message)) {
      PassJobFailPoint(JobFailPoint::kAttestPledged);
      // The deadline is extended only once, so a leader that turns this rank away repeatedly cannot keep this
      // rank waiting for ever.
      if (!std::exchange(sent, true)) deadline = MonotonicNanoseconds() + leader_ns + kAnswerNs;
      const std::vector<std::byte> answer = ReceiveMessage(fd->get(), deadline);
      PassJobFailPoint(JobFailPoint::kAttestVerdict);
      if (!answer.empty()) return DecodeVerdict(answer, pledge.communicator, rendezvous.secret);
    }
    std::this_thread::sleep_for(kRetry);
  } while (MonotonicNanoseconds() < deadline);
  return MakeError(ErrorKind::kUnavailable, "no answer from {}:{}", rendezvous.address, rendezvous.port);
}

Status PledgeAndLeave(const RendezvousPoint& rendezvous, const PledgeMessage& pledge, int connect_ms) {
  DYNAMICCL_TRY(const ControlSocket fd, Connect(rendezvous.address, rendezvous.port, connect_ms));
  return SendAll(fd.get(), EncodePledge(pledge, rendezvous.secret));
}

}  // namespace dynamiccl
