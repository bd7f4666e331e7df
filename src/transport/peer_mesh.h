// SPDX-License-Identifier: Apache-2.0
// A unix socket between every two ranks of a communicator: hands over memory, carries small exchanges at
// set-up, and tells that a peer ended, since the kernel closes a dead process's sockets.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/base/unique_fd.h"
#include "src/transport/socket.h"

namespace dynamiccl {

// The socket on which a rank awaits its peers; its name travels to them by the rendezvous.
struct MeshListener {
  UniqueFd fd;
  std::string name;

  // The random name cannot be guessed; the user id of whoever connects is checked as well.
  static Result<MeshListener> Open();
};

class PeerMesh {
 public:
  // Every rank calls it; `names` are the listeners' names by rank.
  static Result<std::unique_ptr<PeerMesh>> Connect(MeshListener listener,
                                                   const std::vector<std::string>& names, int rank,
                                                   Deadline deadline);

  // Collective: every rank's bytes, indexed by rank. Messages must be small (at most 64 KiB): all send before
  // they receive.
  Result<std::vector<std::vector<std::byte>>> AllGather(std::span<const std::byte> mine, Deadline deadline);
  // Collective: a descriptor from every rank; the own entry is invalid.
  Result<std::vector<UniqueFd>> AllGatherDescriptors(int mine, Deadline deadline);

  // Looks for closed connections without waiting. Any thread, one at a time.
  void LookForDeparted();
  // True once the peer ended or closed its communicator.
  bool departed(int peer) const {
    return departed_[static_cast<size_t>(peer)].load(std::memory_order_acquire);
  }

  // Tells all peers that this rank is gone. Any thread.
  void Shutdown();

  int rank() const { return rank_; }
  int n_ranks() const { return static_cast<int>(sockets_.size()); }

 private:
  PeerMesh(int rank, size_t n_ranks) : rank_(rank), sockets_(n_ranks), departed_(n_ranks) {}

  int rank_;
  std::vector<UniqueFd> sockets_;  // by rank; the own entry is invalid
  std::vector<std::atomic<bool>> departed_;
};

}  // namespace dynamiccl
