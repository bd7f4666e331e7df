// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/pledge_sender.h"

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "plugin/border/no_throw.h"
#include "src/base/clock.h"
#include "src/base/job_fail_point.h"
#include "src/base/log.h"

namespace dynamiccl {
namespace {

constexpr int64_t kMillisecondNs = 1'000'000;
// Milliseconds between attempts to reach a leader that was never reached.
constexpr int kReachAgainMs = 5;
// Milliseconds between attempts of a rank that has pledged. A rank pledges only to a leader that it has
// reached, so one of the next few attempts will get an answer.
constexpr int kAskAgainMs = 50;
// The most milliseconds of one attempt to connect, because the thread has other pledges to handle.
constexpr int kConnectMs = 200;
// After kEvenAttempts overdue verdicts in a row, each further one doubles the wait for the next, at most
// kMaxDoublings times.
constexpr int kEvenAttempts = 6;
constexpr int kMaxDoublings = 4;
// A leader gives its verdict within a twentieth of the attestation's time-out. If a rank has waited for 5 s,
// it logs why.
constexpr int64_t kWarnNs = 5'000 * kMillisecondNs;
// A connection counts as lasting if it lives for a second. A peer that accepts connections and drops them
// sooner each time is not the leader but another program at its port, or a proxy.
constexpr int64_t kLastingNs = 1'000 * kMillisecondNs;

}  // namespace

PledgeSender::PledgeSender(int max_disconnected_ms)
    : max_disconnected_ns_(max_disconnected_ms * kMillisecondNs) {
  thread_.Start([this] { Run(); });
}

PledgeSender::~PledgeSender() {
  thread_.Stop();
  AdoptQueued();
  for (Sent& sent : sent_) {
    sent.member.Release();
    sent.verdict->Resolve(*sent.member.decision());
  }
}

std::shared_ptr<PendingVerdict> PledgeSender::Send(const RendezvousPoint& rendezvous, PledgeMessage pledge,
                                                   int leader_ms,
                                                   std::shared_ptr<const std::atomic<bool>> gone,
                                                   bool has_rank) {
  auto verdict = std::make_shared<PendingVerdict>();
  {
    const std::lock_guard lock(mutex_);
    const int64_t now = MonotonicNanoseconds();
    Sent& sent = queued_.emplace_back();
    sent.rendezvous = rendezvous;
    sent.pledge = std::move(pledge);
    sent.leader_ns = leader_ms * kMillisecondNs;
    sent.reach_until_ns = now + sent.leader_ns;
    sent.next_try_ns = now;
    sent.warn_ns = now + kWarnNs;
    sent.gone = std::move(gone);
    sent.has_rank = has_rank;
    sent.verdict = verdict;
  }
  thread_.Wake();
  return verdict;
}

void PledgeSender::Run() {
  while (WaitAndReceive()) {
    AdoptQueued();
    sent_.remove_if([this](Sent& sent) { return Advance(sent); });
  }
}

int PledgeSender::TimeoutMs() const {
  int timeout = sent_.empty() ? -1 : kAskAgainMs;
  for (const Sent& sent : sent_) {
    if (!sent.fd.valid() && !sent.member.pledged()) timeout = kReachAgainMs;
  }
  return timeout;
}

bool PledgeSender::WaitAndReceive() {
  std::vector<pollfd> waiting;
  for (const Sent& sent : sent_) {
    if (sent.fd.valid()) waiting.push_back({sent.fd.get(), POLLIN, 0});
  }
  if (!thread_.WaitFor(waiting, TimeoutMs())) return false;
  size_t i = 0;
  for (Sent& sent : sent_) {
    if (!sent.fd.valid() || waiting[i++].revents == 0) continue;
    if (NoThrowOrFalse([&] { return Receive(sent); })) continue;
    // The leader turned this rank away, or the connection broke: try again.
    sent.fd.Reset();
    sent.next_try_ns = MonotonicNanoseconds() + kAskAgainMs * kMillisecondNs;
  }
  return true;
}

void PledgeSender::AdoptQueued() {
  const std::lock_guard lock(mutex_);
  std::move(queued_.begin(), queued_.end(), std::back_inserter(sent_));
  queued_.clear();
}

bool PledgeSender::Advance(Sent& sent) {
  const int64_t now = MonotonicNanoseconds();
  if (sent.gone && sent.gone->load()) sent.member.Release();
  if (sent.pledge.kind == VoteKind::kInit) ReleaseIfDisconnected(sent);
  if (!sent.member.decision() && now >= sent.next_try_ns) TryToSend(sent, now);
  if (!sent.member.decision()) {
    WarnIfLate(sent, now);
    return false;
  }
  sent.verdict->Resolve(*sent.member.decision());
  return true;
}

void PledgeSender::TryToSend(Sent& sent, int64_t now_ns) {
  const RendezvousPoint& rendezvous = sent.rendezvous;
  if (sent.fd.valid()) ++sent.overdue;
  sent.fd.Reset();
  sent.received.clear();
  const int64_t left_ms = (sent.reach_until_ns - now_ns) / kMillisecondNs;
  const bool enough = left_ms <= 0 || timed_out_ >= kMaxLateSituations;
  const auto time_out = [&] {
    const std::string why = fmt::format("no answer from {}:{}", rendezvous.address, rendezvous.port);
    timed_out_ += sent.member.FallBackToNccl(why) ? 1 : 0;
  };
  if (enough) time_out();
  if (sent.member.decision()) return;
  const int patience_ms = sent.member.pledged() ? kConnectMs : static_cast<int>(left_ms);
  auto fd = Connect(rendezvous.address, rendezvous.port, std::min(patience_ms, kConnectMs));
  if (fd) {
    // From here on bytes may arrive, so a time-out must not resolve the pledge any more.
    if (sent.member.Pledge() && SendAll(fd->get(), EncodePledge(sent.pledge, rendezvous.secret))) {
      sent.fd = std::move(*fd);
      sent.connected_ns = MonotonicNanoseconds();
      PassJobFailPoint(JobFailPoint::kMaskPledged);
    }
  } else if (fd.error().kind == ErrorKind::kPeerFailed) {
    time_out();  // has no effect if the rank has pledged
    if (sent.pledge.kind == VoteKind::kInit)
      sent.member.Release(fmt::format("the process at {}:{} has ended", rendezvous.address, rendezvous.port));
  }
  ReleaseIfLeaderEnded(sent, !fd && fd.error().kind == ErrorKind::kPeerFailed);
  const int again_ms = sent.member.pledged() ? kAskAgainMs : kReachAgainMs;
  const int64_t again_ns = sent.fd.valid() ? OverdueNs(sent) : again_ms * kMillisecondNs;
  sent.next_try_ns = MonotonicNanoseconds() + again_ns;
}

int64_t PledgeSender::OverdueNs(const Sent& sent) {
  const int doublings = std::clamp(sent.overdue - kEvenAttempts, 0, kMaxDoublings);
  return (sent.leader_ns + kAnswerNs) << doublings;
}

void PledgeSender::ReleaseIfLeaderEnded(Sent& sent, bool refused) {
  const int64_t now_ns = MonotonicNanoseconds();
  if (!refused || !sent.has_rank) {
    sent.refused_ns = 0;
  } else if (sent.refused_ns == 0) {
    sent.refused_ns = now_ns;
  } else if (now_ns - sent.refused_ns >= kLastingNs) {
    sent.member.Release(fmt::format("the process at {}:{} has ended, and with it the communicator",
                                    sent.rendezvous.address, sent.rendezvous.port));
  }
}

void PledgeSender::ReleaseIfDisconnected(Sent& sent) const {
  if (!sent.member.pledged()) return;
  const int64_t now_ns = MonotonicNanoseconds();
  // Counts at most a second since the previous check. A longer gap means that this process was stopped and
  // did not try to connect.
  const int64_t step_ns = sent.seen_ns == 0 ? 0 : std::min(now_ns - sent.seen_ns, kLastingNs);
  sent.seen_ns = now_ns;
  const bool lasts = sent.fd.valid() && now_ns - sent.connected_ns >= kLastingNs;
  sent.disconnected_ns = lasts ? 0 : sent.disconnected_ns + step_ns;
  if (sent.fd.valid() || sent.disconnected_ns < max_disconnected_ns_) return;
  sent.member.Release(fmt::format("no connection to {}:{} in {} s", sent.rendezvous.address,
                                  sent.rendezvous.port, max_disconnected_ns_ / (1'000 * kMillisecondNs)));
}

void PledgeSender::WarnIfLate(Sent& sent, int64_t now_ns) const {
  if (sent.warn_ns == 0 || now_ns < sent.warn_ns) return;
  sent.warn_ns = 0;
  // There are hundreds of situations (kinds of calls), and one warning is enough for all of them.
  static std::atomic<bool> warned_of_situation{false};
  if (sent.pledge.kind != VoteKind::kInit && warned_of_situation.exchange(true)) return;
  const std::string end =
      sent.pledge.kind == VoteKind::kInit
          ? fmt::format("the end of that process, or {} s without a connection to it, ends that",
                        max_disconnected_ns_ / (1'000 * kMillisecondNs))
          : "an abort of the communicator ends that";
  Log(LogLevel::kWarn, "rank {} has pledged itself and waits for the verdict of {}:{}; {}",
      sent.pledge.member, sent.rendezvous.address, sent.rendezvous.port, end);
}

bool PledgeSender::Receive(Sent& sent) {
  std::byte buffer[kMaxMessageBytes];
  const ssize_t got = ::recv(sent.fd.get(), buffer, sizeof(buffer), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (got <= 0) return false;
  sent.received.insert(sent.received.end(), buffer, buffer + got);
  if (sent.received.size() < kMessageHeaderBytes) return true;
  const auto total = MessageBytes(sent.received);
  if (!total) return false;
  if (sent.received.size() < *total) return true;
  const auto verdict =
      DecodeVerdict(std::span(sent.received).first(*total), sent.pledge.communicator, sent.rendezvous.secret);
  if (!verdict) return false;
  PassJobFailPoint(JobFailPoint::kMaskVerdict);
  sent.member.ApplyVerdict(*verdict);
  return true;
}

}  // namespace dynamiccl
