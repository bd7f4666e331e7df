// SPDX-License-Identifier: Apache-2.0
// The rendezvous, through which the ranks of a new communicator find each other. Every rank connects to the
// root's TCP address, sends a payload (its endpoint) and receives the payloads of all ranks.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "src/base/status.h"
#include "src/transport/socket.h"

namespace dynamiccl {

// A secret that is part of the unique id. Only ranks of this communicator know it.
using RendezvousToken = std::array<std::byte, 24>;

// Listens on `interface_address` and serves one rendezvous on a detached thread. The thread ends when all
// ranks have been answered, or `timeout_ms` milliseconds after the first rank came.
//
// Connections without the token are dropped. An impossible rank ends the rendezvous, and every rank that came
// receives the reason. Impossible are rank 4 of 4, the same rank twice, and a different number of ranks.
Result<TcpAddress> StartRendezvousRoot(const std::string& interface_address, const RendezvousToken& token,
                                       int64_t timeout_ms);

// Serves a rendezvous on a socket that listens already. It uses a duplicate of the socket, so the caller's
// stays open.
Status ServeRendezvous(int listener, const RendezvousToken& token, int64_t timeout_ms);

// Holds what a rank needs to take part in a rendezvous.
struct RendezvousTicket {
  TcpAddress root;
  RendezvousToken token;
  int rank = 0;
  int n_ranks = 1;
};

// Sends `payload` (at most 64 KiB) and returns the payloads of all ranks, by rank. The error kTimeout names
// the ranks that did not come; kPeerFailed means that the root is gone.
Result<std::vector<std::vector<std::byte>>> MeetAtRendezvous(const RendezvousTicket& ticket,
                                                             std::span<const std::byte> payload,
                                                             int64_t timeout_ms);

}  // namespace dynamiccl
