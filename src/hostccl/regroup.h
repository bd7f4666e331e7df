// SPDX-License-Identifier: Apache-2.0
// Lets some of a communicator's ranks find each other again without the others, even if the others have died.
// For this every rank keeps a listening socket, whose address all ranks know from the start. ncclCommShrink
// uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/transport/peer_mesh.h"
#include "src/transport/rendezvous.h"

namespace dynamiccl::hostccl {

// The listening sockets of all ranks, as one rank knows them. The communicator owns the object, which does
// not change. Any thread may use it.
struct RegroupListeners {
  TcpListener own;
  std::vector<TcpAddress> addresses;  // by rank

  // Collective over all ranks of the mesh: opens this rank's socket and exchanges the addresses.
  static Result<RegroupListeners> Open(PeerMesh& mesh, const std::string& interface_address,
                                       Deadline deadline);

  // Collective over `ranks`, which is ascending and contains the caller, `rank`. The ranks meet at the socket
  // of the lowest one. Returns the bytes of each of these ranks, in that order. `key` distinguishes the
  // regroupings of a communicator and must be equal on all ranks. Ranks that name other members are not
  // admitted.
  Result<std::vector<std::vector<std::byte>>> Meet(std::span<const int> ranks, int rank, uint64_t key,
                                                   std::span<const std::byte> mine, int64_t timeout_ms) const;
};

}  // namespace dynamiccl::hostccl
