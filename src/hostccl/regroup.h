// SPDX-License-Identifier: Apache-2.0
// How some of a communicator's ranks find each other again without the others, even when the others have
// died. Every rank keeps a door: a listening socket whose address all ranks know from the start.
// ncclCommShrink uses it.
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

// The doors of all ranks, as one rank sees them. The communicator owns it and it does not change; any thread.
struct RegroupDoors {
  TcpListener own;
  std::vector<TcpAddress> addresses;  // by rank

  // Collective over the mesh: opens this rank's door and exchanges the addresses.
  static Result<RegroupDoors> Open(PeerMesh& mesh, const std::string& interface_address, Deadline deadline);

  // Collective over `ranks` (ascending, with this one, `rank`, among them). Returns every rank's bytes, in
  // that order. They meet at the door of the lowest rank. `key` distinguishes the meetings of a communicator
  // and must be equal on all; ranks that name other members are not let in.
  Result<std::vector<std::vector<std::byte>>> Meet(std::span<const int> ranks, int rank, uint64_t key,
                                                   std::span<const std::byte> mine, int64_t timeout_ms) const;
};

}  // namespace dynamiccl::hostccl
