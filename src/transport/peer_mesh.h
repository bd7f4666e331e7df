// SPDX-License-Identifier: Apache-2.0
// A connection between every two ranks of a communicator: carries small exchanges at set-up, hands over
// memory inside a host, and tells that a peer ended. A unix socket between processes of a host, TCP between
// hosts (the kernel closes a dead process's sockets), a mailbox between threads of a process.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/base/unique_fd.h"
#include "src/transport/endpoint.h"
#include "src/transport/socket.h"
#include "src/transport/thread_mailbox.h"

namespace dynamiccl {

// Where a rank awaits its peers; its name travels to them by the rendezvous. Members only may know it.
struct MeshListener {
  UniqueFd fd;
  UniqueFd tcp;
  std::shared_ptr<ThreadMailbox> mailbox;
  std::string name;  // Endpoint::Encode()

  MeshListener() = default;
  MeshListener(MeshListener&&) = default;
  MeshListener& operator=(MeshListener&&) = default;
  ~MeshListener();

  // Inside a host the random name cannot be guessed, and the user id of whoever connects is checked as well.
  static Result<MeshListener> Open();
};

// How a peer is reached.
enum class Reach : uint8_t { kSelf, kSameProcess, kSameHost, kRemote };

class PeerMesh {
 public:
  // Every rank calls it; `names` are the listeners' names by rank.
  static Result<std::unique_ptr<PeerMesh>> Connect(MeshListener listener,
                                                   const std::vector<std::string>& names, int rank,
                                                   Deadline deadline);
  ~PeerMesh();

  // Collective: every rank's bytes, indexed by rank. Messages must be small (at most 64 KiB): all send before
  // they receive.
  Result<std::vector<std::vector<std::byte>>> AllGather(std::span<const std::byte> mine, Deadline deadline);
  // Collective: a descriptor from every rank in another process of this host; the other entries are invalid.
  Result<std::vector<UniqueFd>> AllGatherDescriptors(int mine, Deadline deadline);

  Reach reach(int peer) const { return reach_[static_cast<size_t>(peer)]; }
  // Its memory can be mapped here.
  bool same_host(int peer) const { return reach(peer) != Reach::kRemote; }
  // The host of each rank, numbered in the order of their lowest ranks: equal on all ranks.
  const std::vector<int>& hosts() const { return hosts_; }
  // The second connection to a remote peer, for the relay; once.
  UniqueFd TakeRelaySocket(int peer) { return std::move(relay_sockets_[static_cast<size_t>(peer)]); }

  // Looks for closed connections without waiting. Any thread, one at a time.
  void LookForDeparted();
  // True once the peer ended or closed its communicator and LookForDeparted has seen it.
  bool departed(int peer) const {
    return departed_[static_cast<size_t>(peer)].load(std::memory_order_acquire);
  }
  // The relay has delivered all that a remote peer posted before it ended. Any thread.
  void NoteRemoteEnd(int peer) {
    remote_ends_[static_cast<size_t>(peer)].store(true, std::memory_order_release);
  }

  // Tells all peers that this rank is gone. Any thread.
  void Shutdown();

  int rank() const { return rank_; }
  int n_ranks() const { return static_cast<int>(sockets_.size()); }

 private:
  PeerMesh(MeshListener& listener, std::vector<Endpoint> endpoints, int rank);
  Status ConnectProcesses(int listener, Deadline deadline);
  Status ConnectHosts(int listener, Deadline deadline);
  Status Send(size_t peer, std::span<const std::byte> message, Deadline deadline);
  Result<std::vector<std::byte>> Receive(size_t peer, Deadline deadline);
  bool HasEnded(size_t peer) const;
  int Count(Reach reach, int first, int last) const;

  int rank_;
  std::vector<Endpoint> endpoints_;  // by rank, as all that follow
  std::vector<Reach> reach_;
  std::vector<int> hosts_;
  std::vector<UniqueFd> sockets_;  // invalid within the process
  std::vector<UniqueFd> relay_sockets_;
  std::shared_ptr<ThreadMailbox> mailbox_;
  std::vector<std::shared_ptr<ThreadMailbox>> threads_;  // null but within the process
  std::vector<std::atomic<bool>> departed_;
  std::vector<std::atomic<bool>> remote_ends_;
};

}  // namespace dynamiccl
