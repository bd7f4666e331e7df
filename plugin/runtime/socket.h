// SPDX-License-Identifier: Apache-2.0
// The socket calls of the control plane: TCP with numeric addresses and deadlines. Sockets do not block, are
// not inherited by programs that the process starts, and raise no signal; errors are returned. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace dynamiccl {

// A listening socket with its own address.
struct ListeningSocket {
  UniqueFd fd;
  std::string address;  // numeric
  uint16_t port = 0;
};

// Listens on the first address of `host` (a name or a number) that belongs to this machine; port 0: any port.
Result<ListeningSocket> Listen(const std::string& host, uint16_t port);
// Returns the next waiting connection; an error if there is none.
Result<UniqueFd> Accept(int listening_fd);
// Tries each address of `host` for `timeout_ms`. kPeerFailed: the host answers but nobody listens at the
// port. Any other error does not show whether the peer's process lives.
Result<UniqueFd> Connect(const std::string& host, uint16_t port, int timeout_ms);

// Sends a whole message. kTimeout: the peer has not read for a second.
Status SendAll(int fd, std::span<const std::byte> bytes);
// Parses "host:port" or "[v6]:port".
Result<std::pair<std::string, uint16_t>> ParseHostPort(const std::string& text);

}  // namespace dynamiccl
