// SPDX-License-Identifier: Apache-2.0
#include "src/transport/peer_mesh.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <utility>

#include "src/base/byte_codec.h"
#include "src/base/sha256.h"

namespace dynamiccl {
namespace {

constexpr uint32_t kMaxMessage = 1 << 16;

Status AcceptPeers(const MeshListener& listener, int rank, std::vector<UniqueFd>& sockets,
                   Deadline deadline) {
  for (size_t expected = sockets.size() - 1 - static_cast<size_t>(rank); expected > 0; --expected) {
    DYNAMICCL_TRY(UniqueFd socket, Accept(listener.fd.get(), deadline));
    DYNAMICCL_CHECK_OK(CheckPeerUser(socket.get()));
    uint32_t peer = 0;
    DYNAMICCL_CHECK_OK(ReceiveAll(socket.get(), std::as_writable_bytes(std::span(&peer, 1)), deadline));
    if (peer >= sockets.size() || sockets[peer].valid()) {
      return MakeError(ErrorKind::kInvalidArgument, "an unexpected peer came as rank {}", peer);
    }
    sockets[peer] = std::move(socket);
  }
  return {};
}

}  // namespace

Result<MeshListener> MeshListener::Open() {
  std::array<uint8_t, 16> random{};
  FillRandom(std::as_writable_bytes(std::span(random)));
  MeshListener listener;
  listener.name = "hostccl-" + ToHex(random);
  DYNAMICCL_TRY(listener.fd, ListenAbstract(listener.name));
  return listener;
}

Result<std::unique_ptr<PeerMesh>> PeerMesh::Connect(MeshListener listener,
                                                    const std::vector<std::string>& names, int rank,
                                                    Deadline deadline) {
  std::unique_ptr<PeerMesh> mesh(new PeerMesh(rank, names.size()));
  // Connecting to a listener succeeds before it accepts, so the order of ranks cannot deadlock.
  for (size_t peer = 0; peer < static_cast<size_t>(rank); ++peer) {
    DYNAMICCL_TRY(UniqueFd socket, ConnectAbstract(names[peer]));
    DYNAMICCL_CHECK_OK(CheckPeerUser(socket.get()));
    const auto self = static_cast<uint32_t>(rank);
    DYNAMICCL_CHECK_OK(SendAll(socket.get(), std::as_bytes(std::span(&self, 1)), deadline));
    mesh->sockets_[peer] = std::move(socket);
  }
  DYNAMICCL_CHECK_OK(AcceptPeers(listener, rank, mesh->sockets_, deadline));
  return mesh;
}

Result<std::vector<std::vector<std::byte>>> PeerMesh::AllGather(std::span<const std::byte> mine,
                                                                Deadline deadline) {
  ByteWriter message;
  message.Put(static_cast<uint32_t>(mine.size()));
  message.PutBytes(mine);
  for (const UniqueFd& socket : sockets_) {
    if (socket.valid()) DYNAMICCL_CHECK_OK(SendAll(socket.get(), message.buffer(), deadline));
  }
  std::vector<std::vector<std::byte>> all(sockets_.size());
  for (size_t peer = 0; peer < sockets_.size(); ++peer) {
    if (!sockets_[peer].valid()) {
      all[peer].assign(mine.begin(), mine.end());
      continue;
    }
    uint32_t size = 0;
    DYNAMICCL_CHECK_OK(
        ReceiveAll(sockets_[peer].get(), std::as_writable_bytes(std::span(&size, 1)), deadline));
    if (size > kMaxMessage)
      return MakeError(ErrorKind::kCorrupt, "rank {} sent a message of {} bytes", peer, size);
    all[peer].resize(size);
    DYNAMICCL_CHECK_OK(ReceiveAll(sockets_[peer].get(), all[peer], deadline));
  }
  return all;
}

Result<std::vector<UniqueFd>> PeerMesh::AllGatherDescriptors(int mine, Deadline deadline) {
  for (const UniqueFd& socket : sockets_) {
    if (socket.valid()) DYNAMICCL_CHECK_OK(SendDescriptor(socket.get(), mine));
  }
  std::vector<UniqueFd> all(sockets_.size());
  for (size_t peer = 0; peer < sockets_.size(); ++peer) {
    if (!sockets_[peer].valid()) continue;
    DYNAMICCL_TRY(all[peer], ReceiveDescriptor(sockets_[peer].get(), deadline));
  }
  return all;
}

void PeerMesh::LookForDeparted() {
  for (size_t peer = 0; peer < sockets_.size(); ++peer) {
    if (!sockets_[peer].valid() || departed_[peer].load(std::memory_order_relaxed)) continue;
    pollfd entry{sockets_[peer].get(), POLLRDHUP, 0};
    if (::poll(&entry, 1, 0) > 0) departed_[peer].store(true, std::memory_order_release);
  }
}

void PeerMesh::Shutdown() {
  for (const UniqueFd& socket : sockets_) {
    if (socket.valid()) ::shutdown(socket.get(), SHUT_RDWR);
  }
}

}  // namespace dynamiccl
