// SPDX-License-Identifier: Apache-2.0
// Connections between all ranks of a communicator. They carry the small exchanges at set-up, hand over memory
// inside a host, and show when a peer has ended.
//
// Threads of one process use a mailbox, processes of one host a unix socket, ranks on different hosts TCP.
// When a process dies the kernel closes its sockets, which is how its peers notice. Its forked children hold
// no copies of them (fork_guard.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/base/fork_guard.h"
#include "src/base/status.h"
#include "src/base/unique_fd.h"
#include "src/transport/endpoint.h"
#include "src/transport/socket.h"
#include "src/transport/thread_mailbox.h"

namespace dynamiccl {

// The sockets and the mailbox on which a rank awaits its peers. The listener's name reaches the peers by the
// rendezvous and contains a secret, so only members may learn it.
struct MeshListener {
  UniqueFd fd;
  UniqueFd tcp;
  std::shared_ptr<ThreadMailbox> mailbox;
  std::string name;  // an encoded Endpoint

  MeshListener() = default;
  MeshListener(MeshListener&&) = default;
  MeshListener& operator=(MeshListener&&) = default;
  ~MeshListener();

  // Listens on an abstract unix socket, a TCP port and a mailbox. Other users of the host cannot guess the
  // random name of the unix socket, and the user id of whoever connects is checked as well.
  static Result<MeshListener> Open();
};

// Says how this rank reaches a peer.
enum class Reach : uint8_t { kSelf, kSameProcess, kSameHost, kRemote };

// One communicator owns the mesh, and its thread makes the exchanges. Functions that other threads may call
// say so. Every exchange is collective: all ranks call it, in the same order. When a peer ends in the middle,
// the exchange fails with kPeerFailed on the ranks that wait for that peer. After a failed exchange its
// messages may still arrive, so this rank makes no further exchange: each later one fails with kPeerFailed.
class PeerMesh {
 public:
  // Collective: connects this rank to all others. `names` are the names of all ranks' listeners, by rank.
  static Result<std::unique_ptr<PeerMesh>> Connect(MeshListener listener,
                                                   const std::vector<std::string>& names, int rank,
                                                   Deadline deadline);
  ~PeerMesh();

  // Collective: returns the bytes of every rank, by rank. A message must have at most 64 KiB, because every
  // rank sends to all others before it receives.
  Result<std::vector<std::vector<std::byte>>> AllGather(std::span<const std::byte> mine, Deadline deadline);
  // Collective: returns the descriptor of every rank in another process of this host. The entries of other
  // ranks are empty.
  Result<std::vector<UniqueFd>> AllGatherDescriptors(int mine, Deadline deadline);

  Reach reach(int peer) const { return reach_[static_cast<size_t>(peer)]; }
  // Returns whether memory of the peer can be mapped into this process.
  bool same_host(int peer) const { return reach(peer) != Reach::kRemote; }
  // Returns the host number of each rank. Hosts are numbered in the order of their lowest ranks, so the
  // numbers are equal on all ranks.
  const std::vector<int>& hosts() const { return hosts_; }
  // Hands over the second connection to a remote peer; the relay uses this connection. Call it once for each
  // remote peer.
  UniqueFd TakeRelaySocket(int peer) { return std::move(relay_sockets_[static_cast<size_t>(peer)]); }

  // Looks for closed connections without waiting. Any thread may call this, but only one at a time.
  void LookForDeparted();
  // Returns true once LookForDeparted has seen that the peer ended or closed its communicator. Any thread may
  // call this.
  bool departed(int peer) const {
    return departed_[static_cast<size_t>(peer)].load(std::memory_order_acquire);
  }
  // The relay calls this when it has delivered all that a remote peer posted before the peer ended. Any
  // thread may call this.
  void NoteRemoteEnd(int peer) {
    remote_ends_[static_cast<size_t>(peer)].store(true, std::memory_order_release);
  }

  // Tells all peers that this rank is gone. Any thread may call this.
  void Shutdown();

  int rank() const { return rank_; }
  int n_ranks() const { return static_cast<int>(sockets_.size()); }

 private:
  PeerMesh(MeshListener& listener, std::vector<Endpoint> endpoints, int rank);
  Status ConnectProcesses(int listener, Deadline deadline);
  Status ConnectHosts(int listener, Deadline deadline);
  Status BeginExchange();
  Status Send(size_t peer, std::span<const std::byte> message, Deadline deadline);
  Result<std::vector<std::byte>> Receive(size_t peer, Deadline deadline);
  bool HasEnded(size_t peer) const;
  int Count(Reach reach, int first, int last) const;

  int rank_;
  std::vector<Endpoint> endpoints_;  // by rank, like all vectors below
  std::vector<Reach> reach_;
  std::vector<int> hosts_;
  std::vector<UniqueFd> sockets_;  // invalid for threads of this process
  std::vector<UniqueFd> relay_sockets_;
  std::shared_ptr<ThreadMailbox> mailbox_;
  std::vector<std::shared_ptr<ThreadMailbox>> threads_;  // null except for threads of this process
  std::vector<std::atomic<bool>> departed_;
  std::vector<std::atomic<bool>> remote_ends_;
  bool exchanging_ = false;  // true in an exchange, and always after a failed exchange
  ForkGuard fork_guard_;     // guards sockets_; destroyed before them
};

}  // namespace dynamiccl
