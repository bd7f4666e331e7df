// SPDX-License-Identifier: Apache-2.0
// Connecting two ranks of different hosts over TCP: both show that they know the secrets in each other's
// endpoints, which only members of the communicator were told. Grammar and what it protects:
// docs/formats/host_relay.md.
#pragma once

#include <cstdint>
#include <vector>

#include "src/base/status.h"
#include "src/base/unique_fd.h"
#include "src/transport/endpoint.h"

namespace dynamiccl {

// What a connection is for; two ranks have one of each.
enum class ConnectionPurpose : uint32_t { kExchange = 0, kRelay = 1 };

// To the listener of rank `to`; `endpoints` by rank.
Result<UniqueFd> ConnectToMember(const std::vector<Endpoint>& endpoints, int from, int to,
                                 ConnectionPurpose purpose, Deadline deadline);

struct MemberConnection {
  UniqueFd socket;
  int peer = 0;
  ConnectionPurpose purpose = ConnectionPurpose::kExchange;
};

// The next member that connects to rank `self`; strangers are dropped.
Result<MemberConnection> AcceptMember(int listener, const std::vector<Endpoint>& endpoints, int self,
                                      Deadline deadline);

}  // namespace dynamiccl
