// SPDX-License-Identifier: Apache-2.0
// Says how the mesh is set up without deadlock, and the exchanges over it. Every rank first connects to all
// lower ranks and then accepts connections from the higher ones. A message is a uint32 length and its bytes.
#include "src/transport/peer_mesh.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <utility>

#include "src/base/settings.h"
#include "src/base/sha256.h"
#include "src/transport/peer_handshake.h"
#include "src/transport/process_identity.h"

namespace dynamiccl {
namespace {

// In bytes: the longest message. Every rank sends to all peers before it receives, so a message must fit into
// the socket's buffer.
constexpr uint32_t kMaxMessage = 1 << 16;

Reach ReachOf(const Endpoint& self, const Endpoint& peer) {
  if (self.socket_name == peer.socket_name) return Reach::kSelf;
  if (self.host != peer.host) return Reach::kRemote;
  return self.process == peer.process ? Reach::kSameProcess : Reach::kSameHost;
}

// Returns the host number of each rank. Hosts are numbered in the order of their lowest ranks.
std::vector<int> NumberHosts(const std::vector<Endpoint>& endpoints) {
  std::vector<int> hosts;
  int next = 0;
  for (size_t rank = 0; rank < endpoints.size(); ++rank) {
    const auto first = std::find_if(endpoints.begin(), endpoints.end(), [&](const Endpoint& endpoint) {
      return endpoint.host == endpoints[rank].host;
    });
    const auto at = static_cast<size_t>(first - endpoints.begin());
    hosts.push_back(at == rank ? next++ : hosts[at]);
  }
  return hosts;
}

// Accepts the next connection of this user. Every user of the machine can see the listener's name in
// /proc/net/unix and connect; connections of other users are dropped.
Result<UniqueFd> AcceptOwnUser(int listener, Deadline deadline) {
  for (;;) {
    DYNAMICCL_TRY(UniqueFd socket, Accept(listener, deadline));
    if (CheckPeerUser(socket.get())) return socket;
    if (deadline.RemainingMs() == 0)
      return MakeError(ErrorKind::kTimeout, "strangers came, but no rank in time");
  }
}

}  // namespace

Result<MeshListener> MeshListener::Open() {
  std::array<uint8_t, 16> random{};
  FillRandom(std::as_writable_bytes(std::span(random)));
  Endpoint endpoint;
  endpoint.socket_name = "hostccl-" + ToHex(random);
  endpoint.host = HostIdentity();
  endpoint.process = ProcessToken();
  FillRandom(std::as_writable_bytes(std::span(endpoint.secret)));
  MeshListener listener;
  DYNAMICCL_TRY(listener.fd, ListenAbstract(endpoint.socket_name));
  DYNAMICCL_TRY(TcpListener tcp, ListenTcp(TextSetting(Setting::kHostcclInterface)));
  endpoint.address = tcp.address;
  listener.tcp = std::move(tcp.fd);
  listener.mailbox = ThreadMailbox::Open(endpoint.socket_name);
  listener.name = endpoint.Encode();
  return listener;
}

MeshListener::~MeshListener() {
  if (mailbox != nullptr) mailbox->Leave();
}

PeerMesh::PeerMesh(MeshListener& listener, std::vector<Endpoint> endpoints, int rank)
    : rank_(rank),
      endpoints_(std::move(endpoints)),
      hosts_(NumberHosts(endpoints_)),
      sockets_(endpoints_.size()),
      relay_sockets_(endpoints_.size()),
      mailbox_(std::move(listener.mailbox)),
      threads_(endpoints_.size()),
      departed_(endpoints_.size()),
      remote_ends_(endpoints_.size()) {
  for (const Endpoint& peer : endpoints_) {
    reach_.push_back(ReachOf(endpoints_[static_cast<size_t>(rank)], peer));
  }
}

PeerMesh::~PeerMesh() {
  mailbox_->Leave();
}

Result<std::unique_ptr<PeerMesh>> PeerMesh::Connect(MeshListener listener,
                                                    const std::vector<std::string>& names, int rank,
                                                    Deadline deadline) {
  std::vector<Endpoint> endpoints;
  for (const std::string& name : names) {
    DYNAMICCL_TRY(Endpoint endpoint, Endpoint::Decode(name));
    endpoints.push_back(std::move(endpoint));
  }
  std::unique_ptr<PeerMesh> mesh(new PeerMesh(listener, std::move(endpoints), rank));
  for (size_t peer = 0; peer < names.size(); ++peer) {
    if (mesh->reach_[peer] != Reach::kSameProcess) continue;
    mesh->threads_[peer] = ThreadMailbox::Find(mesh->endpoints_[peer].socket_name);
    if (mesh->threads_[peer] == nullptr) {
      return MakeError(ErrorKind::kPeerFailed, "rank {}, a thread of this process, is gone", peer);
    }
  }
  DYNAMICCL_CHECK_OK(mesh->ConnectProcesses(listener.fd.get(), deadline));
  DYNAMICCL_CHECK_OK(mesh->ConnectHosts(listener.tcp.get(), deadline));
  for (const UniqueFd& socket : mesh->sockets_) {
    if (socket.valid()) mesh->fork_guard_.Add(socket.get());
  }
  return mesh;
}

int PeerMesh::Count(Reach reach, int first, int last) const {
  return static_cast<int>(std::count(reach_.begin() + first, reach_.begin() + last, reach));
}

// A connection to a unix socket succeeds before the listener accepts it. So ranks cannot deadlock, in
// whatever order they connect.
Status PeerMesh::ConnectProcesses(int listener, Deadline deadline) {
  for (size_t peer = 0; peer < static_cast<size_t>(rank_); ++peer) {
    if (reach_[peer] != Reach::kSameHost) continue;
    DYNAMICCL_TRY(UniqueFd socket, ConnectAbstract(endpoints_[peer].socket_name));
    DYNAMICCL_CHECK_OK(CheckPeerUser(socket.get()));
    const auto self = static_cast<uint32_t>(rank_);
    DYNAMICCL_CHECK_OK(SendAll(socket.get(), std::as_bytes(std::span(&self, 1)), deadline));
    sockets_[peer] = std::move(socket);
  }
  for (int expected = Count(Reach::kSameHost, rank_, n_ranks()); expected > 0; --expected) {
    DYNAMICCL_TRY(UniqueFd socket, AcceptOwnUser(listener, deadline));
    uint32_t peer = 0;
    DYNAMICCL_CHECK_OK(ReceiveAll(socket.get(), std::as_writable_bytes(std::span(&peer, 1)), deadline));
    if (peer >= sockets_.size() || reach_[peer] != Reach::kSameHost || sockets_[peer].valid()) {
      return MakeError(ErrorKind::kInvalidArgument, "an unexpected peer came as rank {}", peer);
    }
    sockets_[peer] = std::move(socket);
  }
  return {};
}

// Over TCP a connector waits until its connection is accepted. Every rank waits for lower ranks only, and
// rank 0 accepts at once, so this cannot deadlock.
Status PeerMesh::ConnectHosts(int listener, Deadline deadline) {
  constexpr std::array kPurposes = {ConnectionPurpose::kExchange, ConnectionPurpose::kRelay};
  for (int peer = 0; peer < rank_; ++peer) {
    if (reach(peer) != Reach::kRemote) continue;
    for (const ConnectionPurpose purpose : kPurposes) {
      DYNAMICCL_TRY(UniqueFd socket, ConnectToMember(endpoints_, rank_, peer, purpose, deadline));
      auto& sockets = purpose == ConnectionPurpose::kExchange ? sockets_ : relay_sockets_;
      sockets[static_cast<size_t>(peer)] = std::move(socket);
    }
  }
  const int expected = Count(Reach::kRemote, rank_, n_ranks()) * static_cast<int>(kPurposes.size());
  for (int accepted = 0; accepted < expected; ++accepted) {
    DYNAMICCL_TRY(MemberConnection member, AcceptMember(listener, endpoints_, rank_, deadline));
    auto& sockets = member.purpose == ConnectionPurpose::kExchange ? sockets_ : relay_sockets_;
    UniqueFd& place = sockets[static_cast<size_t>(member.peer)];
    if (reach(member.peer) != Reach::kRemote || place.valid()) {
      return MakeError(ErrorKind::kInvalidArgument, "rank {} connected twice", member.peer);
    }
    place = std::move(member.socket);
  }
  return {};
}

Status PeerMesh::Send(size_t peer, std::span<const std::byte> message, Deadline deadline) {
  if (reach_[peer] == Reach::kSameProcess) {
    threads_[peer]->Put(rank_, message);
    return {};
  }
  const auto size = static_cast<uint32_t>(message.size());
  DYNAMICCL_CHECK_OK(SendAll(sockets_[peer].get(), std::as_bytes(std::span(&size, 1)), deadline));
  return SendAll(sockets_[peer].get(), message, deadline);
}

Result<std::vector<std::byte>> PeerMesh::Receive(size_t peer, Deadline deadline) {
  if (reach_[peer] == Reach::kSameProcess) {
    return mailbox_->Take(static_cast<int>(peer), *threads_[peer], deadline);
  }
  const int socket = sockets_[peer].get();
  uint32_t size = 0;
  DYNAMICCL_CHECK_OK(ReceiveAll(socket, std::as_writable_bytes(std::span(&size, 1)), deadline));
  if (size > kMaxMessage) {
    return MakeError(ErrorKind::kCorrupt, "rank {} sent a message of {} bytes", peer, size);
  }
  std::vector<std::byte> message(size);
  DYNAMICCL_CHECK_OK(ReceiveAll(socket, message, deadline));
  return message;
}

Status PeerMesh::BeginExchange() {
  if (!std::exchange(exchanging_, true)) return {};
  return WithHint(MakeError(ErrorKind::kPeerFailed,
                            "rank {}: an earlier exchange over this communicator failed half-way", rank_),
                  "make a new communicator, or shrink this one");
}

Result<std::vector<std::vector<std::byte>>> PeerMesh::AllGather(std::span<const std::byte> mine,
                                                                Deadline deadline) {
  DYNAMICCL_CHECK_OK(BeginExchange());
  for (size_t peer = 0; peer < sockets_.size(); ++peer) {
    if (reach_[peer] != Reach::kSelf) DYNAMICCL_CHECK_OK(Send(peer, mine, deadline));
  }
  std::vector<std::vector<std::byte>> all(sockets_.size());
  for (size_t peer = 0; peer < sockets_.size(); ++peer) {
    if (reach_[peer] == Reach::kSelf) {
      all[peer].assign(mine.begin(), mine.end());
    } else {
      DYNAMICCL_TRY(all[peer], Receive(peer, deadline));
    }
  }
  exchanging_ = false;
  return all;
}

Result<std::vector<UniqueFd>> PeerMesh::AllGatherDescriptors(int mine, Deadline deadline) {
  DYNAMICCL_CHECK_OK(BeginExchange());
  for (size_t peer = 0; peer < sockets_.size(); ++peer) {
    if (reach_[peer] == Reach::kSameHost) DYNAMICCL_CHECK_OK(SendDescriptor(sockets_[peer].get(), mine));
  }
  std::vector<UniqueFd> all(sockets_.size());
  for (size_t peer = 0; peer < sockets_.size(); ++peer) {
    if (reach_[peer] != Reach::kSameHost) continue;
    DYNAMICCL_TRY(all[peer], ReceiveDescriptor(sockets_[peer].get(), deadline));
  }
  exchanging_ = false;
  return all;
}

bool PeerMesh::HasEnded(size_t peer) const {
  switch (reach_[peer]) {
    case Reach::kSelf:
      return false;
    case Reach::kSameProcess:
      return threads_[peer]->left();
    case Reach::kRemote:
      return remote_ends_[peer].load(std::memory_order_acquire);
    case Reach::kSameHost:
      break;
  }
  pollfd entry{sockets_[peer].get(), POLLRDHUP, 0};
  return ::poll(&entry, 1, 0) > 0;
}

void PeerMesh::LookForDeparted() {
  for (size_t peer = 0; peer < sockets_.size(); ++peer) {
    if (!departed_[peer].load(std::memory_order_relaxed) && HasEnded(peer)) {
      departed_[peer].store(true, std::memory_order_release);
    }
  }
}

void PeerMesh::Shutdown() {
  mailbox_->Leave();
  for (const UniqueFd& socket : sockets_) {
    if (socket.valid()) ::shutdown(socket.get(), SHUT_RDWR);
  }
}

}  // namespace dynamiccl
