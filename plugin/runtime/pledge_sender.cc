// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/pledge_sender.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "plugin/runtime/c_boundary.h"
#include "plugin/runtime/signal_block.h"
#include "plugin/runtime/socket.h"
#include "src/base/clock.h"

namespace dynamiccl {
namespace {

// Between attempts to reach a leader that is not there.
constexpr int kRetryMs = 5;

Verdict NoAnswer(const MeetingPoint& meeting) {
  return {false, true, fmt::format("no answer from {}:{}", meeting.address, meeting.port)};
}

}  // namespace

PledgeSender::PledgeSender() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0) {
    wake_read_ = UniqueFd(ends[0]);
    wake_write_ = UniqueFd(ends[1]);
  }
  const SignalBlock no_signals;  // inherited by the thread: the program's handlers never run on it
  thread_ = std::thread([this] { Guarded([this] { Run(); }); });
}

PledgeSender::~PledgeSender() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_write_.Reset();
  thread_.join();
  for (const Sent& sent : sent_) sent.verdict->Resolve(NoAnswer(sent.meeting));
  for (const Sent& sent : queued_) sent.verdict->Resolve(NoAnswer(sent.meeting));
}

std::shared_ptr<PendingVerdict> PledgeSender::Send(const MeetingPoint& meeting, PledgeMessage pledge,
                                                   int connect_ms) {
  auto verdict = std::make_shared<PendingVerdict>();
  {
    const std::lock_guard lock(mutex_);
    const int64_t deadline = MonotonicNanoseconds() + int64_t{connect_ms} * 1'000'000;
    queued_.push_back({meeting, std::move(pledge), deadline, verdict, {}, {}});
  }
  // A full pipe means that the thread has been woken already.
  [[maybe_unused]] const ssize_t written = ::write(wake_write_.get(), "", 1);
  return verdict;
}

void PledgeSender::Run() {
  while (WaitForNews()) {
    TakeQueued();
    SendThoseThatWait();
  }
}

// False at the end.
bool PledgeSender::WaitForNews() {
  std::vector<pollfd> waiting{{wake_read_.get(), POLLIN, 0}};
  bool retry = false;
  for (const Sent& sent : sent_) {
    if (sent.fd.valid()) waiting.push_back({sent.fd.get(), POLLIN, 0});
    retry = retry || !sent.fd.valid();
  }
  if (::poll(waiting.data(), waiting.size(), retry ? kRetryMs : -1) < 0 && errno != EINTR) return false;
  char woken[64];
  while (::read(wake_read_.get(), woken, sizeof(woken)) > 0) continue;
  size_t i = 0;
  sent_.remove_if([&](Sent& sent) {
    if (!sent.fd.valid()) return false;
    return waiting[++i].revents != 0 && !Receive(sent);
  });
  const std::lock_guard lock(mutex_);
  return !stopping_;
}

void PledgeSender::TakeQueued() {
  const std::lock_guard lock(mutex_);
  std::move(queued_.begin(), queued_.end(), std::back_inserter(sent_));
  queued_.clear();
}

void PledgeSender::SendThoseThatWait() {
  sent_.remove_if([&](Sent& sent) { return !sent.fd.valid() && !Connected(sent); });
}

bool PledgeSender::Connected(Sent& sent) {
  const int64_t left_ms = (sent.deadline_ns - MonotonicNanoseconds()) / 1'000'000;
  if (left_ms <= 0) {
    sent.verdict->Resolve(NoAnswer(sent.meeting));
    return false;
  }
  auto fd = Connect(sent.meeting.address, sent.meeting.port, static_cast<int>(left_ms));
  if (fd && SendAll(fd->get(), EncodePledge(sent.pledge, sent.meeting.secret))) sent.fd = std::move(*fd);
  return true;
}

bool PledgeSender::Receive(Sent& sent) {
  std::byte buffer[kMostMessageBytes];
  const ssize_t got = ::recv(sent.fd.get(), buffer, sizeof(buffer), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (got > 0) sent.received.insert(sent.received.end(), buffer, buffer + got);
  const auto total = sent.received.size() < kMessageHeaderBytes ? 0 : MessageBytes(sent.received).value_or(0);
  if (got > 0 && (total == 0 || sent.received.size() < total))
    return sent.received.size() < kMostMessageBytes;
  auto verdict = DecodeVerdict(sent.received, sent.pledge.communicator, sent.meeting.secret);
  if (verdict) {
    sent.verdict->Resolve(std::move(*verdict));
    return false;
  }
  // Turned away, or the connection broke: once more.
  sent.fd.Reset();
  sent.received.clear();
  return true;
}

}  // namespace dynamiccl
