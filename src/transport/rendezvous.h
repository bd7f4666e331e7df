// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a new communicator find each other: every rank brings a payload to the root's TCP
// address and leaves with the payloads of all.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "src/base/status.h"
#include "src/transport/socket.h"

namespace dynamiccl {

using RendezvousToken = std::array<std::byte, 24>;

// Listens on `interface_address` and serves one rendezvous on a thread of its own, which ends when all ranks
// were answered or `timeout_ms` after the first of them came. Connections without the token are dropped; a
// rank that cannot be (rank 4 of 4, two of one rank, another number of ranks) ends it, and all hear why.
Result<TcpAddress> StartRendezvousRoot(const std::string& interface_address, const RendezvousToken& token,
                                       int64_t timeout_ms);

// As above on a socket that listens already, and goes on listening: a duplicate is used.
Status ServeRendezvous(int listener, const RendezvousToken& token, int64_t timeout_ms);

struct RendezvousTicket {
  TcpAddress root;
  RendezvousToken token;
  int rank = 0;
  int n_ranks = 1;
};

// Returns the payloads of all ranks, indexed by rank. kTimeout names the ranks that did not come.
Result<std::vector<std::vector<std::byte>>> MeetAtRendezvous(const RendezvousTicket& ticket,
                                                             std::span<const std::byte> payload,
                                                             int64_t timeout_ms);

}  // namespace dynamiccl
