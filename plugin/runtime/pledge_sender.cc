// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/pledge_sender.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "plugin/runtime/socket.h"
#include "src/base/clock.h"
#include "src/base/log.h"

namespace dynamiccl {
namespace {

constexpr int64_t kMillisecondNs = 1'000'000;
// Between attempts to reach a leader that has not been reached.
constexpr int kReachAgainMs = 5;
// Between questions of a rank that is pledged: the leader lives, so one of the next few is answered.
constexpr int kAskAgainMs = 50;
// One attempt to connect again; the thread has other pledges to see to.
constexpr int kConnectMs = 200;
// A leader gives its verdict in a twentieth of its time-out. Who waits for so long is told why.
constexpr int64_t kComplainNs = 5'000 * kMillisecondNs;

}  // namespace

PledgeSender::PledgeSender() {
  thread_.Start([this] { Run(); });
}

PledgeSender::~PledgeSender() {
  thread_.Stop();
  TakeQueued();
  for (Sent& sent : sent_) {
    sent.member.Release();
    sent.verdict->Resolve(*sent.member.decision());
  }
}

std::shared_ptr<PendingVerdict> PledgeSender::Send(const MeetingPoint& meeting, PledgeMessage pledge,
                                                   int reach_ms,
                                                   std::shared_ptr<const std::atomic<bool>> gone) {
  auto verdict = std::make_shared<PendingVerdict>();
  {
    const std::lock_guard lock(mutex_);
    const int64_t now = MonotonicNanoseconds();
    const int64_t reach_until = now + reach_ms * kMillisecondNs;
    queued_.push_back({meeting,
                       std::move(pledge),
                       reach_until,
                       now,
                       now + kComplainNs,
                       std::move(gone),
                       verdict,
                       {},
                       {},
                       {}});
  }
  thread_.Wake();
  return verdict;
}

void PledgeSender::Run() {
  while (WaitForNews()) {
    TakeQueued();
    sent_.remove_if([this](Sent& sent) { return GoOn(sent); });
  }
}

int PledgeSender::TimeoutMs() const {
  int timeout = sent_.empty() ? -1 : kAskAgainMs;
  for (const Sent& sent : sent_) {
    if (!sent.fd.valid() && !sent.member.pledged()) timeout = kReachAgainMs;
  }
  return timeout;
}

// False at the end.
bool PledgeSender::WaitForNews() {
  std::vector<pollfd> waiting;
  for (const Sent& sent : sent_) {
    if (sent.fd.valid()) waiting.push_back({sent.fd.get(), POLLIN, 0});
  }
  if (!thread_.WaitFor(waiting, TimeoutMs())) return false;
  size_t i = 0;
  for (Sent& sent : sent_) {
    if (!sent.fd.valid() || waiting[i++].revents == 0 || Receive(sent)) continue;
    // Turned away, or the connection broke: once more.
    sent.fd.Reset();
    sent.received.clear();
    sent.say_ns = MonotonicNanoseconds() + kAskAgainMs * kMillisecondNs;
  }
  return true;
}

void PledgeSender::TakeQueued() {
  const std::lock_guard lock(mutex_);
  std::move(queued_.begin(), queued_.end(), std::back_inserter(sent_));
  queued_.clear();
}

bool PledgeSender::GoOn(Sent& sent) {
  const int64_t now = MonotonicNanoseconds();
  if (sent.gone && sent.gone->load()) sent.member.Release();
  if (!sent.member.decision() && !sent.fd.valid() && now >= sent.say_ns) Say(sent, now);
  if (!sent.member.decision()) {
    Complain(sent, now);
    return false;
  }
  sent.verdict->Resolve(*sent.member.decision());
  return true;
}

void PledgeSender::Say(Sent& sent, int64_t now_ns) {
  const MeetingPoint& meeting = sent.meeting;
  const int64_t left_ms = (sent.reach_until_ns - now_ns) / kMillisecondNs;
  const bool enough = left_ms <= 0 || went_alone_ >= kMostLateSituations;
  const auto alone = [&] {
    const std::string why = fmt::format("no answer from {}:{}", meeting.address, meeting.port);
    went_alone_ += sent.member.GoAlone(why) ? 1 : 0;
  };
  if (enough) alone();
  if (sent.member.decision()) return;
  const int patience_ms = sent.member.pledged() ? kConnectMs : static_cast<int>(left_ms);
  auto fd = Connect(meeting.address, meeting.port, std::min(patience_ms, kConnectMs));
  if (fd) {
    // From here on bytes may arrive.
    if (sent.member.Pledge() && SendAll(fd->get(), EncodePledge(sent.pledge, meeting.secret)))
      sent.fd = std::move(*fd);
  } else if (fd.error().kind == ErrorKind::kPeerFailed) {
    alone();  // unless it has pledged
  }
  const int again_ms = sent.member.pledged() ? kAskAgainMs : kReachAgainMs;
  sent.say_ns = MonotonicNanoseconds() + again_ms * kMillisecondNs;
}

void PledgeSender::Complain(Sent& sent, int64_t now_ns) const {
  if (sent.complain_ns == 0 || now_ns < sent.complain_ns) return;
  sent.complain_ns = 0;
  Log(LogLevel::kWarn,
      "rank {} has pledged itself and waits for the verdict of {}:{}; an abort of the communicator ends that",
      sent.pledge.member, sent.meeting.address, sent.meeting.port);
}

bool PledgeSender::Receive(Sent& sent) {
  std::byte buffer[kMostMessageBytes];
  const ssize_t got = ::recv(sent.fd.get(), buffer, sizeof(buffer), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (got <= 0) return false;
  sent.received.insert(sent.received.end(), buffer, buffer + got);
  if (sent.received.size() < kMessageHeaderBytes) return true;
  const auto total = MessageBytes(sent.received);
  if (!total) return false;
  if (sent.received.size() < *total) return true;
  const auto verdict =
      DecodeVerdict(std::span(sent.received).first(*total), sent.pledge.communicator, sent.meeting.secret);
  if (!verdict) return false;
  sent.member.TakeVerdict(*verdict);
  return true;
}

}  // namespace dynamiccl
