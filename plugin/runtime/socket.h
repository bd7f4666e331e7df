// SPDX-License-Identifier: Apache-2.0
// The few socket calls of the control plane: TCP with numeric addresses and deadlines. Sockets do not block,
// are not inherited by programs that the process starts, and raise no signal; what fails is returned. Any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace dynamiccl {

struct ListeningSocket {
  UniqueFd fd;
  std::string address;  // numeric
  uint16_t port = 0;
};

// Binds to the first address of `host` (a name or a number) that is this machine's; port 0: any.
Result<ListeningSocket> Listen(const std::string& host, uint16_t port);
// The next connection that has come; an error when there is none.
Result<UniqueFd> Accept(int listening_fd);
// Tries each address of `host` for `timeout_ms`. kPeerFailed: the host is there and nobody listens; any other
// error: it cannot be told.
Result<UniqueFd> Connect(const std::string& host, uint16_t port, int timeout_ms);

// Sends a whole message. kTimeout: the peer has not read for a second.
Status SendAll(int fd, std::span<const std::byte> bytes);
// "host:port" or "[v6]:port".
Result<std::pair<std::string, uint16_t>> ParseHostPort(const std::string& text);

}  // namespace dynamiccl
