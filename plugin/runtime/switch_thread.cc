// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/switch_thread.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "plugin/border/no_throw.h"
#include "src/base/clock.h"
#include "src/base/job_fail_point.h"
#include "src/base/log.h"

namespace dynamiccl {
namespace {

// Milliseconds between attempts to reach an absent leader, and the time limit of one attempt.
constexpr int kRetryMs = 100;
// The thread's period while a boundary is armed, in milliseconds; equal to the shortest deadline of
// SwitchMember.
constexpr int kArmedTickMs = 10;
// A connection counts as lasting if it lives for a second. If the leader does not accept a rank, it ends the
// connection sooner than that.
constexpr int64_t kLastingNs = 1'000'000'000;
// After connections that did not last, the pauses grow from 1 to this many milliseconds. The leader's own
// rank may be a few milliseconds late, so the first pauses are short. A leader without a rank of its own gets
// some twenty attempts in 30 s from each rank, of which there may be a thousand.
constexpr int kLongestPauseMs = 2000;
// If a host has refused connections to the leader's port for a second, the leader's process is gone: it
// closes that port only when it ends.
constexpr int64_t kEndedNs = 1'000'000'000;
// Measured times wait until enough of them can be sent together (TimesReport), but not for ever. In the first
// second after their rank joined they wait at most kSendTimesAtFirstMs. Later they wait at most a sixteenth
// of the time since the rank joined, and at most kSendTimesAtLastMs.
constexpr int64_t kSendTimesSoonNs = 1'000'000'000;
constexpr int64_t kSendTimesAtFirstMs = 20;
constexpr int64_t kSendTimesAtLastMs = 250;
// Milliseconds between two reports of the digests of decisions. A difference between ranks lasts for seconds,
// so this is often enough, and it costs almost nothing.
constexpr int kDigestMs = 1000;

// Returns the longest wait in milliseconds of times that are reported `age_ns` after the rank joined.
int SendTimesMs(int64_t age_ns) {
  if (age_ns < kSendTimesSoonNs) return kSendTimesAtFirstMs;
  return static_cast<int>(std::min(age_ns / 16 / 1'000'000, kSendTimesAtLastMs));
}

int MillisecondsUntil(int64_t time_ns) {
  const int64_t left_ns = std::max<int64_t>(0, time_ns - MonotonicNanoseconds());
  return static_cast<int>(std::min<int64_t>(left_ns / 1'000'000 + 1, kLongestPauseMs));
}

}  // namespace

SwitchThread::SwitchThread(std::string policy_path, std::shared_ptr<const Policy> first, int reach_ms)
    : reach_ns_(int64_t{reach_ms} * 1'000'000), policies_(std::move(policy_path), std::move(first)) {
  thread_.Start([this] { Run(); });
}

void SwitchThread::Join(const RendezvousPoint& rendezvous, const JoinMessage& join,
                        std::shared_ptr<SwitchableTables> tables, std::shared_ptr<TimesReport> times) {
  {
    const std::lock_guard lock(mutex_);
    present_.emplace(join.communicator, tables);
    LeaderLink link{rendezvous, join, tables, std::move(times), SwitchMember(tables->gate())};
    link.joined_ns = MonotonicNanoseconds();
    link.give_up_ns = link.joined_ns + reach_ns_;
    new_links_.push_back(std::move(link));
  }
  thread_.Wake();
}

bool SwitchThread::Propose(const ControlToken& communicator, ProposedValue proposed) {
  {
    const std::lock_guard lock(mutex_);
    if (!present_.contains(communicator)) return false;
    proposals_.emplace_back(communicator, std::move(proposed));
  }
  thread_.Wake();
  return true;
}

AgreedValues SwitchThread::Values() {
  const std::lock_guard lock(mutex_);
  AgreedValues values;
  for (const auto& [communicator, tables] : present_) values.merge(tables->CommittedValues());
  return values;
}

void SwitchThread::Leave(const std::shared_ptr<SwitchableTables>& tables) {
  tables->gate().Release();
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(present_, [&](const auto& present) { return present.second == tables; });
    any_left_ = true;
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
  while (WaitAndReceive()) {
    UpdateLinks();
    links_.remove_if([this](LeaderLink& link) { return !Advance(link); });
  }
}

int SwitchThread::TimeoutMs() const {
  int timeout = links_.empty() ? -1 : kDigestMs;
  for (const LeaderLink& link : links_) {
    if (!link.tables->gate().idle()) return kArmedTickMs;
    if (!link.fd.valid()) timeout = std::min(timeout, MillisecondsUntil(link.next_try_ns));
    if (link.times && link.times->enabled())
      timeout = std::min(timeout, SendTimesMs(MonotonicNanoseconds() - link.joined_ns));
  }
  return timeout;
}

bool SwitchThread::WaitAndReceive() {
  std::vector<pollfd> waiting;
  for (const LeaderLink& link : links_) {
    if (link.fd.valid()) waiting.push_back({link.fd.get(), POLLIN, 0});
  }
  if (!thread_.WaitFor(waiting, TimeoutMs())) return false;
  size_t i = 0;
  for (LeaderLink& link : links_) {
    if (!link.fd.valid() || waiting[i++].revents == 0) continue;
    if (!NoThrowOrFalse([&] { return Receive(link); })) Disconnect(link, MonotonicNanoseconds());
  }
  return true;
}

void SwitchThread::UpdateLinks() {
  const std::lock_guard lock(mutex_);
  std::move(new_links_.begin(), new_links_.end(), std::back_inserter(links_));
  new_links_.clear();
  if (std::exchange(any_left_, false))
    links_.remove_if([this](const LeaderLink& each) { return !IsPresent(each); });
  TakeProposals();
}

void SwitchThread::TakeProposals() {
  for (auto& [communicator, proposed] : proposals_) {
    for (LeaderLink& link : links_) {
      const bool fits = link.proposed.contains(proposed.name) || link.proposed.size() < kMaxAgreedValues;
      if (!fits || link.join.communicator != communicator) continue;
      link.proposed[proposed.name] = link.unsent[proposed.name] = proposed.value;
    }
  }
  proposals_.clear();
}

bool SwitchThread::IsPresent(const LeaderLink& link) const {
  const auto [begin, end] = present_.equal_range(link.join.communicator);
  return std::any_of(begin, end, [&](const auto& present) { return present.second == link.tables; });
}

bool SwitchThread::Advance(LeaderLink& link) {
  const int64_t now = MonotonicNanoseconds();
  if (!link.fd.valid()) {
    if (now > link.give_up_ns && link.tables->gate().idle()) {
      if (link.times) link.times->SetOrders(false, 0);
      return false;
    }
    if (now >= link.next_try_ns) Connect(link, now);
  }
  const SwitchSends sends = link.member.Tick(now);
  const bool sent =
      link.fd.valid() && Send(link, sends) && SendTimes(link) && SendDigest(link, now) && SendProposals(link);
  if (link.fd.valid() && !sent) Disconnect(link, now);
  return true;
}

void SwitchThread::Disconnect(LeaderLink& link, int64_t now_ns) const {
  link.fd.Reset();
  link.received.clear();
  if (now_ns - link.connected_ns >= kLastingNs) {
    link.give_up_ns = now_ns + reach_ns_;
    link.pause_ms = 0;
  }
  // While a call waits for a verdict, the next attempt to connect comes after kRetryMs at the latest.
  const int pause_ms = link.tables->gate().idle() ? link.pause_ms : std::min(link.pause_ms, kRetryMs);
  link.next_try_ns = now_ns + int64_t{pause_ms} * 1'000'000;
  link.pause_ms = std::clamp(2 * link.pause_ms, 1, kLongestPauseMs);
}

void SwitchThread::Connect(LeaderLink& link, int64_t now_ns) {
  PassJobFailPoint(JobFailPoint::kSwitchJoin);
  auto fd = dynamiccl::Connect(link.rendezvous.address, link.rendezvous.port, kRetryMs);
  FreeIfLeaderEnded(link, !fd && fd.error().kind == ErrorKind::kPeerFailed, now_ns);
  link.next_try_ns = MonotonicNanoseconds() + int64_t{kRetryMs} * 1'000'000;
  if (!fd || !SendAll(fd->get(), EncodeJoin(link.join, link.rendezvous.secret))) return;
  link.fd = std::move(*fd);
  link.connected_ns = now_ns;
  link.unsent = link.proposed;
}

void SwitchThread::FreeIfLeaderEnded(LeaderLink& link, bool refused, int64_t now_ns) {
  if (!refused) {
    link.refused_ns = 0;
    return;
  }
  if (link.refused_ns == 0) link.refused_ns = now_ns;
  CallGate& gate = link.tables->gate();
  if (now_ns - link.refused_ns < kEndedNs || gate.idle() || gate.released()) return;
  Log(LogLevel::kWarn,
      "rank {}: the process at {}:{} has ended, and with it a communicator of {} ranks: its verdict is not "
      "waited for",
      link.join.member, link.rendezvous.address, link.rendezvous.port, link.join.n_ranks);
  gate.Release();
}

bool SwitchThread::Receive(LeaderLink& link) {
  std::byte buffer[kMaxMessageBytes];
  const ssize_t got = ::recv(link.fd.get(), buffer, sizeof(buffer), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (got <= 0) return false;
  link.received.insert(link.received.end(), buffer, buffer + got);
  while (link.received.size() >= kMessageHeaderBytes) {
    const auto total = MessageBytes(link.received);
    if (!total) return false;
    if (link.received.size() < *total) return true;
    if (!HandleMessage(link, std::span(link.received).first(*total))) return false;
    link.received.erase(link.received.begin(), link.received.begin() + static_cast<std::ptrdiff_t>(*total));
  }
  return true;
}

bool SwitchThread::SendTimes(LeaderLink& link) {
  if (!link.times) return true;
  const std::vector<CallTime> times = link.times->Drain();
  for (size_t sent = 0; sent < times.size(); sent += kMaxTimes) {
    const auto end = times.begin() + static_cast<std::ptrdiff_t>(std::min(times.size(), sent + kMaxTimes));
    const TimesMessage message{link.join.communicator,
                               {times.begin() + static_cast<std::ptrdiff_t>(sent), end}};
    if (!SendAll(link.fd.get(), EncodeTimes(message, link.rendezvous.secret))) return false;
  }
  return true;
}

bool SwitchThread::SendProposals(LeaderLink& link) {
  for (const auto& [name, value] : std::exchange(link.unsent, {})) {
    const ProposalMessage message{link.join.communicator, {name, value}};
    if (!SendAll(link.fd.get(), EncodeProposal(message, link.rendezvous.secret))) return false;
  }
  return true;
}

bool SwitchThread::HandleMessage(LeaderLink& link, std::span<const std::byte> message) {
  if (KindOf(message) == ControlKind::kTiming) {
    const auto timing = DecodeTiming(message, link.join.communicator, link.rendezvous.secret);
    if (timing && link.times) link.times->SetOrders(timing->reports_times, timing->all_until);
    return timing.has_value();
  }
  const auto decoded = DecodeSwitch(message, link.join.communicator, link.rendezvous.secret);
  if (!decoded) return false;
  if (decoded->message.kind == SwitchKind::kPrepare) return HandlePrepare(link, *decoded);
  if (decoded->message.kind == SwitchKind::kVerdict) HandleVerdict(link, decoded->message);
  return true;
}

// At the fail points between the steps, tests stop or end the process. They have no other effect.
bool SwitchThread::HandlePrepare(LeaderLink& link, const TableSwitchMessage& prepare) {
  PassJobFailPoint(JobFailPoint::kSwitchPrepare);
  link.member.Prepare(prepare.message, PrepareTable(link, prepare));
  PassJobFailPoint(JobFailPoint::kSwitchArmed);
  const bool sent = Send(link, link.member.Answer());
  PassJobFailPoint(JobFailPoint::kSwitchPledged);
  return sent;
}

bool SwitchThread::PrepareTable(LeaderLink& link, const TableSwitchMessage& prepare) {
  const uint32_t version = prepare.message.version;
  const TableContents& table = prepare.table;
  if (table.values) return link.tables->OfferValues(version, *table.values);
  if (table.leaves_nccl_alone()) return link.tables->OfferNcclsChoice(version);
  if (table.policy == Sha256Digest{}) return link.tables->Offer(version, nullptr, table.plan);
  const auto policy = policies_.Read(table.policy);
  return policy && link.tables->Offer(version, policy, table.plan);
}

void SwitchThread::HandleVerdict(LeaderLink& link, const SwitchMessage& verdict) {
  PassJobFailPoint(JobFailPoint::kSwitchVerdict);
  const uint32_t next = link.tables->gate().next_version();
  if (!link.member.ApplyVerdict(verdict.attempt, verdict.commit)) return;
  link.tables->Committed(next);
  PassJobFailPoint(JobFailPoint::kSwitchCommitted);
}

bool SwitchThread::SendDigest(LeaderLink& link, int64_t now_ns) {
  if (now_ns < link.next_digest_ns) return true;
  link.next_digest_ns = now_ns + int64_t{kDigestMs} * 1'000'000;
  DigestMessage digest{link.join.communicator, link.tables->digest().CheckpointsAfter(link.reported_call)};
  // After an abort, each rank leaves its calls to NCCL from a different call on, so its digests must not be
  // compared.
  if (digest.checkpoints.empty() || link.tables->gate().released()) return true;
  for (const DigestCheckpoint& checkpoint : digest.checkpoints)
    link.reported_call = std::max(link.reported_call, checkpoint.call);
  return SendAll(link.fd.get(), EncodeDigest(digest, link.rendezvous.secret)).has_value();
}

bool SwitchThread::Send(LeaderLink& link, const SwitchSends& sends) {
  for (const SwitchSend& send : sends) {
    const auto bytes = EncodeSwitch({link.join.communicator, send.message, {}}, link.rendezvous.secret);
    if (!SendAll(link.fd.get(), bytes)) return false;
  }
  return true;
}

}  // namespace dynamiccl
