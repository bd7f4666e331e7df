// SPDX-License-Identifier: Apache-2.0
// How some of a communicator's ranks find each other again without the others, whatever became of them: every
// rank keeps a door, a listening socket whose address all know from the start.
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

struct RegroupDoors {
  TcpListener own;
  std::vector<TcpAddress> addresses;  // by rank

  // Collective over the mesh.
  static Result<RegroupDoors> Open(PeerMesh& mesh, const std::string& interface_address, Deadline deadline);

  // Collective over `ranks` (ascending; `rank`, this one, among them): every rank's bytes, in that order.
  // They meet at the door of the lowest. `key` tells one meeting of the communicator from another and must be
  // equal; ranks that name other ranks are not let in.
  Result<std::vector<std::vector<std::byte>>> Meet(std::span<const int> ranks, int rank, uint64_t key,
                                                   std::span<const std::byte> mine, int64_t timeout_ms) const;
};

}  // namespace dynamiccl::hostccl
