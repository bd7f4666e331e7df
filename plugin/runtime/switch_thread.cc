// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/switch_thread.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "plugin/runtime/c_boundary.h"
#include "plugin/runtime/socket.h"
#include "src/base/clock.h"
#include "src/base/job_fail_point.h"
#include "src/base/log.h"

namespace dynamiccl {
namespace {

// Between attempts to reach a leader that is not there.
constexpr int kRetryMs = 100;
// While a boundary is armed: as fine as the times of the member's machine.
constexpr int kArmedTickMs = 10;
// A leader that cannot be reached for so long ends switching for a rank that waits for nothing.
constexpr int64_t kReachNs = 30'000'000'000;
// A host that has refused connections to the leader's port for so long has no such process any more: it
// closes that port at its end alone.
constexpr int64_t kEndedNs = 1'000'000'000;
// Times that are fewer than are told together wait at most so long.
constexpr int kTellMs = 20;
// Between two looks at what was decided: often enough against the seconds that a difference may last, and
// rarely enough to cost nothing.
constexpr int kLookMs = 1000;

}  // namespace

SwitchThread::SwitchThread(std::string policy_path, std::shared_ptr<const Policy> first)
    : policies_(std::move(policy_path), std::move(first)) {
  thread_.Start([this] { Run(); });
}

void SwitchThread::Join(const MeetingPoint& meeting, const JoinMessage& join,
                        std::shared_ptr<SwitchableTables> tables, std::shared_ptr<TimesReport> times) {
  {
    const std::lock_guard lock(mutex_);
    present_.emplace(join.communicator, tables);
    Joined joined{meeting, join, tables, std::move(times), SwitchMember(tables->gate())};
    joined.reach_until_ns = MonotonicNanoseconds() + kReachNs;
    queued_.push_back(std::move(joined));
  }
  thread_.Wake();
}

void SwitchThread::Leave(const std::shared_ptr<SwitchableTables>& tables) {
  tables->gate().Release();
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(present_, [&](const auto& present) { return present.second == tables; });
    left_ = true;
  }
  thread_.Wake();
}

std::optional<uint64_t> SwitchThread::CallsOf(const ControlToken& communicator) {
  const std::lock_guard lock(mutex_);
  std::optional<uint64_t> calls;
  const auto [begin, end] = present_.equal_range(communicator);
  for (auto present = begin; present != end; ++present)
    calls = std::max(calls.value_or(0), present->second->gate().calls());
  return calls;
}

void SwitchThread::Run() {
  while (WaitForNews()) {
    TakeQueued();
    joined_.remove_if([this](Joined& joined) { return !GoOn(joined); });
  }
}

int SwitchThread::TimeoutMs() const {
  int timeout = joined_.empty() ? -1 : kLookMs;
  for (const Joined& joined : joined_) {
    if (!joined.tables->gate().idle()) return kArmedTickMs;
    if (!joined.fd.valid()) timeout = std::min(timeout, kRetryMs);
    if (joined.times && joined.times->tells()) timeout = std::min(timeout, kTellMs);
  }
  return timeout;
}

bool SwitchThread::WaitForNews() {
  std::vector<pollfd> waiting;
  for (const Joined& joined : joined_) {
    if (joined.fd.valid()) waiting.push_back({joined.fd.get(), POLLIN, 0});
  }
  if (!thread_.WaitFor(waiting, TimeoutMs())) return false;
  size_t i = 0;
  for (Joined& joined : joined_) {
    if (!joined.fd.valid() || waiting[i++].revents == 0) continue;
    if (GuardedTrue([&] { return Receive(joined); })) continue;
    // What was said may be lost; a rank that is pledged has to hear the verdict.
    joined.fd.Reset();
    joined.received.clear();
    joined.reach_until_ns = MonotonicNanoseconds() + kReachNs;
  }
  return true;
}

void SwitchThread::TakeQueued() {
  const std::lock_guard lock(mutex_);
  std::move(queued_.begin(), queued_.end(), std::back_inserter(joined_));
  queued_.clear();
  if (std::exchange(left_, false)) joined_.remove_if([this](const Joined& each) { return !IsPresent(each); });
}

bool SwitchThread::IsPresent(const Joined& joined) const {
  const auto [begin, end] = present_.equal_range(joined.join.communicator);
  return std::any_of(begin, end, [&](const auto& present) { return present.second == joined.tables; });
}

bool SwitchThread::GoOn(Joined& joined) {
  const int64_t now = MonotonicNanoseconds();
  if (!joined.fd.valid()) {
    if (now > joined.reach_until_ns && joined.tables->gate().idle()) return false;
    PassJobFailPoint(JobFailPoint::kSwitchJoin);
    auto fd = Connect(joined.meeting.address, joined.meeting.port, kRetryMs);
    FreeIfLeaderEnded(joined, !fd && fd.error().kind == ErrorKind::kPeerFailed, now);
    if (fd && SendAll(fd->get(), EncodeJoin(joined.join, joined.meeting.secret))) joined.fd = std::move(*fd);
  }
  const SwitchSends sends = joined.member.Tick(now);
  const bool told = joined.fd.valid() && Send(joined, sends) && SendTimes(joined) && SendDigest(joined, now);
  if (joined.fd.valid() && !told) joined.fd.Reset();
  return true;
}

void SwitchThread::FreeIfLeaderEnded(Joined& joined, bool refused, int64_t now_ns) {
  if (!refused) {
    joined.refused_ns = 0;
    return;
  }
  if (joined.refused_ns == 0) joined.refused_ns = now_ns;
  CallGate& gate = joined.tables->gate();
  if (now_ns - joined.refused_ns < kEndedNs || gate.idle() || gate.released()) return;
  Log(LogLevel::kWarn,
      "rank {}: the process at {}:{} has ended, and with it a communicator of {} ranks: its verdict is not "
      "waited for",
      joined.join.member, joined.meeting.address, joined.meeting.port, joined.join.n_ranks);
  gate.Release();
}

bool SwitchThread::Receive(Joined& joined) {
  std::byte buffer[kMaxMessageBytes];
  const ssize_t got = ::recv(joined.fd.get(), buffer, sizeof(buffer), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (got <= 0) return false;
  joined.received.insert(joined.received.end(), buffer, buffer + got);
  while (joined.received.size() >= kMessageHeaderBytes) {
    const auto total = MessageBytes(joined.received);
    if (!total) return false;
    if (joined.received.size() < *total) return true;
    if (!Hear(joined, std::span(joined.received).first(*total))) return false;
    joined.received.erase(joined.received.begin(),
                          joined.received.begin() + static_cast<std::ptrdiff_t>(*total));
  }
  return true;
}

bool SwitchThread::SendTimes(Joined& joined) {
  if (!joined.times) return true;
  const std::vector<CallTime> times = joined.times->Take();
  for (size_t sent = 0; sent < times.size(); sent += kMaxTimes) {
    const auto end = times.begin() + static_cast<std::ptrdiff_t>(std::min(times.size(), sent + kMaxTimes));
    const TimesMessage message{joined.join.communicator,
                               {times.begin() + static_cast<std::ptrdiff_t>(sent), end}};
    if (!SendAll(joined.fd.get(), EncodeTimes(message, joined.meeting.secret))) return false;
  }
  return true;
}

bool SwitchThread::Hear(Joined& joined, std::span<const std::byte> message) {
  if (KindOf(message) == ControlKind::kTiming) {
    const auto timing = DecodeTiming(message, joined.join.communicator, joined.meeting.secret);
    if (timing && joined.times) joined.times->BeTold(timing->tells, timing->all_until);
    return timing.has_value();
  }
  const auto letter = DecodeSwitch(message, joined.join.communicator, joined.meeting.secret);
  if (!letter) return false;
  const SwitchMessage& said = letter->message;
  if (said.kind == SwitchKind::kPrepare) {
    PassJobFailPoint(JobFailPoint::kSwitchPrepare);
    const TableContents& table = letter->table;
    const bool usable = table.leaves_nccl_alone()
                            ? joined.tables->OfferNcclsChoice(said.version)
                            : joined.tables->Offer(said.version, policies_.Read(table.policy), table.plan);
    joined.member.Prepare(said, usable);
    PassJobFailPoint(JobFailPoint::kSwitchArmed);
    const bool sent = Send(joined, joined.member.Answer());
    PassJobFailPoint(JobFailPoint::kSwitchPledged);
    return sent;
  }
  if (said.kind == SwitchKind::kVerdict) {
    PassJobFailPoint(JobFailPoint::kSwitchVerdict);
    const uint32_t next = joined.tables->gate().next_version();
    if (!joined.member.TakeVerdict(said.attempt, said.commit)) return true;
    joined.tables->Committed(next);
    PassJobFailPoint(JobFailPoint::kSwitchCommitted);
  }
  return true;
}

bool SwitchThread::SendDigest(Joined& joined, int64_t now_ns) {
  if (now_ns < joined.look_ns) return true;
  joined.look_ns = now_ns + int64_t{kLookMs} * 1'000'000;
  DigestMessage digest{joined.join.communicator, joined.tables->digest().Behind(joined.told_until)};
  // Calls of an aborted communicator are left to NCCL, on each rank from a call of its own on.
  if (digest.checkpoints.empty() || joined.tables->gate().released()) return true;
  for (const DigestCheckpoint& checkpoint : digest.checkpoints)
    joined.told_until = std::max(joined.told_until, checkpoint.call);
  return SendAll(joined.fd.get(), EncodeDigest(digest, joined.meeting.secret)).has_value();
}

bool SwitchThread::Send(Joined& joined, const SwitchSends& sends) {
  for (const SwitchSend& send : sends) {
    const auto bytes = EncodeSwitch({joined.join.communicator, send.message, {}}, joined.meeting.secret);
    if (!SendAll(joined.fd.get(), bytes)) return false;
  }
  return true;
}

}  // namespace dynamiccl
