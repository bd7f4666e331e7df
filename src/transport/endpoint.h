// SPDX-License-Identifier: Apache-2.0
// Where a rank's peers reach it, from this process, this host or another one. Travels as one text through the
// rendezvous or through the mesh of a parent communicator, to members only.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "src/base/status.h"
#include "src/transport/socket.h"

namespace dynamiccl {

struct Endpoint {
  std::string socket_name;           // abstract unix socket
  std::string host;                  // HostIdentity()
  uint64_t process = 0;              // ProcessToken()
  TcpAddress address;                // for peers on other hosts
  std::array<uint8_t, 16> secret{};  // shows a peer on another host to be a member (peer_handshake.h)

  std::string Encode() const;
  static Result<Endpoint> Decode(const std::string& text);
};

}  // namespace dynamiccl
