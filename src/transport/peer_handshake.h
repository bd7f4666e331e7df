// SPDX-License-Identifier: Apache-2.0
// Connects two ranks on different hosts over TCP. Each side proves that it knows the secrets in both
// endpoints, which only members of the communicator receive. docs/formats/host_relay.md has the grammar and
// lists the attacks that this stops.
#pragma once

#include <cstdint>
#include <vector>

#include "src/base/status.h"
#include "src/base/unique_fd.h"
#include "src/transport/endpoint.h"

namespace dynamiccl {

// Every two ranks on different hosts have one connection for each purpose.
enum class ConnectionPurpose : uint32_t { kExchange = 0, kRelay = 1 };

// Connects the caller, rank `from`, to the listener of rank `to`. `endpoints` are those of all ranks, by
// rank. Returns kPeerFailed when the listener cannot be reached or does not prove to be that rank, kTimeout
// at the deadline.
Result<UniqueFd> ConnectToMember(const std::vector<Endpoint>& endpoints, int from, int to,
                                 ConnectionPurpose purpose, Deadline deadline);

// A connection whose other end has proved to be rank `peer`.
struct MemberConnection {
  UniqueFd socket;
  int peer = 0;
  ConnectionPurpose purpose = ConnectionPurpose::kExchange;
};

// Waits for the next member that connects to rank `self`. Connections that do not prove membership are
// dropped.
Result<MemberConnection> AcceptMember(int listener, const std::vector<Endpoint>& endpoints, int self,
                                      Deadline deadline);

}  // namespace dynamiccl
