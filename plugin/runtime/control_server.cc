// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/control_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "plugin/border/no_throw.h"
#include "src/base/job_fail_point.h"

namespace dynamiccl {
namespace {

// A peer that connects and sends no complete first message is dropped after 5 s.
constexpr int64_t kSilenceNs = 5'000'000'000;
// The most connections: more than any job needs at one process, and below the usual limit of descriptors.
constexpr size_t kMaxPeers = 16384;
// Nanoseconds until the next attempt after a connection could not be accepted.
constexpr int64_t kAcceptAgainNs = 50'000'000;
// The end of a job waits at most this long until what the guards have learnt is saved.
constexpr auto kKeepingTime = std::chrono::seconds(2);

}  // namespace

Result<std::unique_ptr<ControlServer>> ControlServer::Start(const std::vector<std::string>& hosts,
                                                            uint16_t port, int timeout_ms,
                                                            std::unique_ptr<SwitchLeadership> switching) {
  Error last{ErrorKind::kNotFound, "no address to listen on", {}};
  for (const std::string& host : hosts) {
    auto listening = Listen(host, port);
    if (listening) {
      return std::unique_ptr<ControlServer>(
          new ControlServer(std::move(*listening), timeout_ms, std::move(switching)));
    }
    last = listening.error();
  }
  return tl::unexpected(last);
}

ControlServer::ControlServer(ListeningSocket listening, int timeout_ms,
                             std::unique_ptr<SwitchLeadership> switching)
    : listening_(std::move(listening)),
      timeout_ns_(int64_t{timeout_ms} * 1'000'000),
      switching_(std::move(switching)) {
  if (switching_) switching_->OnChangedFile([this] { thread_.Wake(); });
  thread_.Start([this] { Run(); });
}

void ControlServer::RegisterRoot(const ControlToken& root, const ControlSecret& secret) {
  const std::lock_guard lock(mutex_);
  secrets_[root] = secret;
  // Ranks that join a communicator later know the secret, but not the token of the first communicator. So
  // ranks may also meet under a token that is computed from the secret.
  secrets_[RootOfSecret(secret)] = secret;
}

bool ControlServer::HasRoot(const ControlToken& root) const {
  const std::lock_guard lock(mutex_);
  return secrets_.contains(root);
}

bool ControlServer::OfferTable(const ControlToken& communicator, TableOffer offer) {
  if (!switching_) return false;
  switching_->Offer(communicator, std::move(offer));
  thread_.Wake();
  return true;
}

bool ControlServer::Guard(std::shared_ptr<TableGuard> guard) {
  if (!switching_) return false;
  switching_->Guard(std::move(guard));
  thread_.Wake();
  return true;
}

void ControlServer::SaveResults() {
  if (!switching_) return;
  std::unique_lock lock(ending_mutex_);
  save_state_ = SaveState::kRequested;
  thread_.Wake();
  saved_.wait_for(lock, kKeepingTime, [this] { return save_state_ == SaveState::kDone; });
}

void ControlServer::SaveIfRequested() {
  const std::lock_guard lock(ending_mutex_);
  if (save_state_ != SaveState::kRequested) return;
  switching_->SaveResults();
  save_state_ = SaveState::kDone;
  saved_.notify_all();
}

// Each round waits, receives, accepts, ends votes, closes connections, sends verdicts, and advances
// switching.
void ControlServer::Run() {
  while (true) {
    if (MonotonicNanoseconds() >= accept_from_ns_) accept_from_ns_ = 0;
    std::vector<pollfd> waiting{{accept_from_ns_ == 0 ? listening_.fd.get() : -1, POLLIN, 0}};
    for (const Peer& peer : peers_) waiting.push_back({peer.fd.get(), POLLIN, 0});
    if (!thread_.WaitFor(waiting, NextTimeoutMs())) return;
    std::vector<bool> over(peers_.size());
    for (size_t i = 0; i < peers_.size(); ++i) {
      if (waiting[i + 1].revents != 0) over[i] = !NoThrowOrFalse([&] { return Receive(peers_[i]); });
    }
    if (waiting[0].revents != 0) AcceptPeers();
    over.resize(peers_.size());
    Expire();
    CloseWhere(over);
    SendVerdicts();
    if (!switching_) continue;
    switching_->Tick(MonotonicNanoseconds());
    SaveIfRequested();
  }
}

// Returns the milliseconds until the next deadline of a vote, of a silent connection or of switching; -1:
// no deadline.
int ControlServer::NextTimeoutMs() const {
  int64_t next = INT64_MAX;
  for (const auto& [token, vote] : votes_) {
    if (!vote.attestation.verdict()) next = std::min(next, vote.deadline_ns);
  }
  for (const Peer& peer : peers_) {
    if (!peer.pledged && !peer.joined) next = std::min(next, peer.since_ns + kSilenceNs);
  }
  if (accept_from_ns_ != 0) next = std::min(next, accept_from_ns_);
  const int tick_ms = switching_ ? switching_->NextTickMs() : -1;
  if (next == INT64_MAX) return tick_ms;
  const auto left_ms =
      static_cast<int>(std::max<int64_t>(0, (next - MonotonicNanoseconds()) / 1'000'000 + 1));
  return tick_ms < 0 ? left_ms : std::min(left_ms, tick_ms);
}

// Each round looks at all connections. If a round accepted only one of n ranks, a start would take time that
// grows with n * n.
void ControlServer::AcceptPeers() {
  for (size_t accepted = 0; accepted < kMaxPeers; ++accepted) {
    auto fd = Accept(listening_.fd.get());
    if (!fd) {
      if (fd.error().kind != ErrorKind::kNotFound) accept_from_ns_ = MonotonicNanoseconds() + kAcceptAgainNs;
      return;
    }
    if (peers_.size() >= kMaxPeers) continue;
    Peer peer;
    peer.fd = std::move(*fd);
    peer.since_ns = MonotonicNanoseconds();
    peers_.push_back(std::move(peer));
  }
}

bool ControlServer::Receive(Peer& peer) {
  std::byte buffer[kMaxMessageBytes];
  const ssize_t got = ::recv(peer.fd.get(), buffer, sizeof(buffer), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  // A peer must send nothing after its pledge.
  if (got <= 0 || peer.pledged) return false;
  peer.received.insert(peer.received.end(), buffer, buffer + got);
  if (peer.joined) return HandleSwitching(peer);
  if (peer.received.size() < kMessageHeaderBytes) return true;
  const auto total = MessageBytes(peer.received);
  if (!total) return false;
  return peer.received.size() < *total || HandleFirstMessage(peer, *total);
}

// The first message names the root under which the rank meets, and with it the secret that it must know. A
// rank that joins may send more at once; nothing may follow a pledge.
bool ControlServer::HandleFirstMessage(Peer& peer, size_t bytes) {
  const auto message = std::span(peer.received).first(bytes);
  const auto root = RootOf(message);
  if (!root) return false;
  ControlSecret secret;
  {
    const std::lock_guard lock(mutex_);
    const auto found = secrets_.find(*root);
    if (found == secrets_.end()) return false;
    secret = found->second;
  }
  if (KindOf(message) != ControlKind::kJoin)
    return peer.received.size() == bytes && HandlePledge(peer, secret);
  const auto join = DecodeJoin(message, secret);
  if (!join || !switching_ || !switching_->Join(peer.fd.get(), *join, secret)) return false;
  peer.joined = true;
  peer.received.erase(peer.received.begin(), peer.received.begin() + static_cast<std::ptrdiff_t>(bytes));
  return HandleSwitching(peer);
}

// A joined connection sends any number of messages; the last one may still be incomplete.
bool ControlServer::HandleSwitching(Peer& peer) {
  while (peer.received.size() >= kMessageHeaderBytes) {
    const auto total = MessageBytes(peer.received);
    if (!total) return false;
    if (peer.received.size() < *total) return true;
    if (!switching_->HandleMessage(peer.fd.get(), std::span(peer.received).first(*total))) return false;
    peer.received.erase(peer.received.begin(), peer.received.begin() + static_cast<std::ptrdiff_t>(*total));
  }
  return true;
}

// A pledge that is sent again after its connection broke changes nothing, because it has the same member
// number.
bool ControlServer::HandlePledge(Peer& peer, const ControlSecret& secret) {
  const auto pledge = DecodePledge(peer.received, secret);
  if (!pledge || pledge->n_ranks < 1) return false;
  PassJobFailPoint(JobFailPoint::kServerPledge);
  peer.pledged = true;
  peer.communicator = pledge->communicator;
  peer.member = pledge->member;
  peer.secret = secret;
  if (agreed_.Contains(pledge->communicator)) return true;
  Vote& vote = VoteOf(*pledge);
  if (pledge->kind == VoteKind::kInit) vote.answered.insert(pledge->member);
  Attestation& attestation = vote.attestation;
  if (!pledge->declines.empty()) attestation.Decline(pledge->member, pledge->declines);
  if (pledge->of_leader) attestation.LeaderTakesPart();
  attestation.Pledge(pledge->member, pledge->n_ranks, pledge->values);
  return true;
}

// The first pledge begins the vote and its time. A vote about a situation gets a fraction of the time-out, so
// that all late situations of a job together take no longer than one late communicator.
ControlServer::Vote& ControlServer::VoteOf(const PledgeMessage& pledge) {
  const bool about_situation =
      pledge.kind == VoteKind::kSituation || pledge.kind == VoteKind::kSituationWithLeader;
  const int64_t patience = about_situation ? timeout_ns_ / kMaxLateSituations : timeout_ns_;
  // The leader of a child is a rank of the original communicator, and is perhaps not in the child. A vote
  // before an init is always about a communicator with a unique id, whose leader takes part.
  const bool only_with_leader = pledge.communicator == pledge.root || pledge.kind == VoteKind::kInit ||
                                pledge.kind == VoteKind::kSituationWithLeader;
  const auto [found, created] = votes_.try_emplace(pledge.communicator, pledge.n_ranks, only_with_leader,
                                                   MonotonicNanoseconds() + patience);
  found->second.kind = pledge.kind;
  if (created) EndIfHopeless(pledge, found->second);
  return found->second;
}

// The ranks vote before NCCL's init, and attest during it. The init ends on no rank before all ranks have
// begun it. So a rank that did not answer the vote in its whole time does not come to the attestation either.
// A vote that was refused at its first pledge has waited for nobody, so it does not show who comes.
const ControlServer::Vote* ControlServer::MissedInit(const PledgeMessage& pledge) const {
  if (pledge.kind != VoteKind::kCommunicator) return nullptr;
  const auto init = votes_.find(InitToken(pledge.communicator));
  if (init == votes_.end()) return nullptr;
  const bool all_came = init->second.answered.size() >= static_cast<size_t>(pledge.n_ranks);
  return init->second.ran_out && !all_came ? &init->second : nullptr;
}

void ControlServer::EndIfHopeless(const PledgeMessage& pledge, Vote& vote) {
  if (const Vote* init = MissedInit(pledge)) {
    vote.attestation.EndAs(*init->attestation.verdict());
    gave_up_ = true;
  }
  if (gave_up_ || (gave_up_inits_ && pledge.kind == VoteKind::kInit)) vote.attestation.Expire();
}

void ControlServer::Expire() {
  const int64_t now = MonotonicNanoseconds();
  for (auto& [token, vote] : votes_) {
    if (vote.attestation.verdict() || now < vote.deadline_ns) continue;
    vote.attestation.Expire();
    vote.ran_out = true;
    if (vote.kind == VoteKind::kInit) {
      gave_up_inits_ = true;
    } else if (vote.kind == VoteKind::kCommunicator || ++late_situations_ >= kMaxLateSituations) {
      gave_up_ = true;
    }
  }
}

void ControlServer::CloseWhere(const std::vector<bool>& over) {
  const int64_t now = MonotonicNanoseconds();
  size_t kept = 0;
  for (size_t i = 0; i < peers_.size(); ++i) {
    const bool silent = !peers_[i].pledged && !peers_[i].joined && now - peers_[i].since_ns > kSilenceNs;
    if (over[i] && peers_[i].joined) switching_->ConnectionLost(peers_[i].fd.get());
    if (over[i] || silent) continue;
    if (kept != i) peers_[kept] = std::move(peers_[i]);
    ++kept;
  }
  peers_.resize(kept);
}

const Verdict* ControlServer::VerdictOf(const Peer& peer) const {
  static const Verdict kYes{.agreed = true};
  if (!peer.pledged) return nullptr;
  const auto vote = votes_.find(peer.communicator);
  if (vote == votes_.end()) return agreed_.Contains(peer.communicator) ? &kYes : nullptr;
  const auto& verdict = vote->second.attestation.verdict();
  return verdict ? &*verdict : nullptr;
}

void ControlServer::NoteInformed(const Peer& peer) {
  const auto vote = votes_.find(peer.communicator);
  if (vote == votes_.end() || !vote->second.attestation.verdict()->agreed) return;
  vote->second.informed.insert(peer.member);
  if (!vote->second.over()) return;
  agreed_.Add(peer.communicator);
  votes_.erase(vote);
}

void ControlServer::SendVerdicts() {
  std::vector<bool> informed(peers_.size());
  for (size_t i = 0; i < peers_.size(); ++i) {
    const Peer& peer = peers_[i];
    const Verdict* const verdict = VerdictOf(peer);
    if (verdict == nullptr) continue;
    PassJobFailPoint(JobFailPoint::kServerVerdict);
    (void)SendAll(peer.fd.get(), EncodeVerdict(peer.communicator, *verdict, peer.secret));
    informed[i] = true;
    NoteInformed(peer);
  }
  if (std::find(informed.begin(), informed.end(), true) != informed.end()) CloseWhere(informed);
}

}  // namespace dynamiccl
