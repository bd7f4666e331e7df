// SPDX-License-Identifier: Apache-2.0
// The socket calls of the control plane: TCP with numeric addresses and deadlines. Sockets do not block, are
// inherited neither by programs that the process starts nor by forked children, and raise no signal; errors
// are returned. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "src/base/fork_guard.h"
#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace dynamiccl {

// Owns a socket and closes it. Ranks are freed when the leader's port is closed and its connections end, so a
// forked child that outlives this process must hold neither. Movable; one thread at a time.
class ControlSocket {
 public:
  ControlSocket() = default;
  // Owns `fd`, which may be empty.
  explicit ControlSocket(UniqueFd fd) : fd_(std::move(fd)), guard_(std::make_unique<ForkGuard>()) {
    if (fd_.valid()) guard_->Add(fd_.get());
  }
  ControlSocket(ControlSocket&&) noexcept = default;
  ControlSocket& operator=(ControlSocket&& other) noexcept {
    Reset();
    fd_ = std::move(other.fd_);
    guard_ = std::move(other.guard_);
    return *this;
  }
  ~ControlSocket() = default;

  int get() const { return fd_.get(); }
  bool valid() const { return fd_.valid(); }
  // Closes the socket, if there is one.
  void Reset() {
    guard_.reset();
    fd_.Reset();
  }

 private:
  UniqueFd fd_;
  std::unique_ptr<ForkGuard> guard_;  // guards fd_, and is destroyed before it
};

// A listening socket with its own address.
struct ListeningSocket {
  ControlSocket fd;
  std::string address;  // numeric
  uint16_t port = 0;
};

// Listens on the first address of `host` (a name or a number) that belongs to this machine; port 0: any port.
Result<ListeningSocket> Listen(const std::string& host, uint16_t port);
// Returns the next waiting connection. kNotFound: none waits.
Result<ControlSocket> Accept(int listening_fd);
// Tries each address of `host` for `timeout_ms`. kPeerFailed: the host answers but nobody listens at the
// port. Any other error does not show whether the peer's process lives.
Result<ControlSocket> Connect(const std::string& host, uint16_t port, int timeout_ms);

// Sends a whole message. kTimeout: the peer has not read for a second.
Status SendAll(int fd, std::span<const std::byte> bytes);
// Parses "host:port" or "[v6]:port".
Result<std::pair<std::string, uint16_t>> ParseHostPort(const std::string& text);

}  // namespace dynamiccl
