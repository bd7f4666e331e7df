// SPDX-License-Identifier: Apache-2.0
// The address of a rank: how its peers reach it from this process, this host or another host.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "src/base/status.h"
#include "src/transport/socket.h"

namespace dynamiccl {

// This plain value travels as one text through the rendezvous or through the mesh of a parent communicator.
// It contains a secret, so only members of the communicator may receive it.
struct Endpoint {
  std::string socket_name;           // name of an abstract unix socket
  std::string host;                  // HostIdentity()
  uint64_t process = 0;              // ProcessToken()
  TcpAddress address;                // for peers on other hosts
  std::array<uint8_t, 16> secret{};  // proves membership to a peer on another host (peer_handshake.h)

  // Returns these fields as text: version, socket name, host, process, IPv4 address, port, secret.
  std::string Encode() const;
  // Reads a text that Encode wrote. Returns kCorrupt, with the version that was found, for a text of another
  // version or any other text.
  static Result<Endpoint> Decode(const std::string& text);
};

}  // namespace dynamiccl
