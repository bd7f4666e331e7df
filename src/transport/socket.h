// SPDX-License-Identifier: Apache-2.0
// Stream sockets with deadlines: TCP for the rendezvous, abstract unix sockets (no file is ever left) between
// ranks of a host, which can carry a file descriptor.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace dynamiccl {

// A point of CLOCK_MONOTONIC after which waiting fails with kTimeout.
struct Deadline {
  int64_t at_ns = 0;

  static Deadline After(int64_t milliseconds);
  // Milliseconds left for poll(), at least 0.
  int RemainingMs() const;
};

// While it lives, waits of this thread end soon with kUnavailable once `*cancelled` is true.
class CancelScope {
 public:
  explicit CancelScope(const std::atomic<bool>& cancelled);
  ~CancelScope();
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;

  // True when the calling thread is to stop waiting, with the error GivenUp.
  static bool Cancelled();
  static tl::unexpected<Error> GivenUp();
  // When a wait of this thread should look again.
  static std::chrono::system_clock::time_point NextLook();
};

// Host byte order.
struct TcpAddress {
  uint32_t ipv4 = 0;
  uint16_t port = 0;
};
std::string Name(const TcpAddress& address);

struct TcpListener {
  UniqueFd fd;
  TcpAddress address;
};

// Listens on a free port of an interface: a dotted IPv4 address or a choice of names (interface_address.h).
Result<TcpListener> ListenTcp(const std::string& interface);
Result<UniqueFd> ConnectTcp(const TcpAddress& address, Deadline deadline);
// Small messages leave at once (TCP_NODELAY); ConnectTcp has set it.
void SetNoDelay(int socket);

// `name` without the leading zero byte of the abstract name space.
Result<UniqueFd> ListenAbstract(const std::string& name);
Result<UniqueFd> ConnectAbstract(const std::string& name);

Result<UniqueFd> Accept(int listener, Deadline deadline);

// kPeerFailed when the peer closed, kTimeout at the deadline.
Status SendAll(int socket, std::span<const std::byte> bytes, Deadline deadline);
Status ReceiveAll(int socket, std::span<std::byte> bytes, Deadline deadline);

// Hands a descriptor to the peer together with one byte.
Status SendDescriptor(int socket, int descriptor);
Result<UniqueFd> ReceiveDescriptor(int socket, Deadline deadline);

// Fails unless the process at the other end of a unix socket runs under our user id.
Status CheckPeerUser(int socket);

// Cryptographically random bytes (getrandom).
void FillRandom(std::span<std::byte> bytes);

}  // namespace dynamiccl
