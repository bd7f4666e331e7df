// SPDX-License-Identifier: Apache-2.0
// Stream sockets with deadlines: TCP for the rendezvous and between hosts, abstract unix sockets between the
// ranks of a host. Abstract sockets leave no file behind and can carry a file descriptor.
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

// A point in time after which waiting fails with kTimeout. `at_ns` is in nanoseconds of CLOCK_MONOTONIC.
struct Deadline {
  int64_t at_ns = 0;

  static Deadline After(int64_t milliseconds);
  // Milliseconds left, for poll(); at least 0.
  int RemainingMs() const;
};

// While it lives, waits of this thread end with kUnavailable soon (within 20 ms) after `*cancelled` becomes
// true. ncclCommAbort uses it to free a rank that waits for peers. Scopes do not nest.
class CancelScope {
 public:
  explicit CancelScope(const std::atomic<bool>& cancelled);
  ~CancelScope();
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;

  // Returns whether the calling thread shall stop waiting, with the error GivenUp().
  static bool Cancelled();
  static tl::unexpected<Error> GivenUp();
  // When a wait of this thread on a condition variable should look at Cancelled() again.
  static std::chrono::system_clock::time_point NextLook();
};

// An IPv4 address and a port, both in host byte order.
struct TcpAddress {
  uint32_t ipv4 = 0;
  uint16_t port = 0;
};
// Returns for example "10.0.0.1:4711".
std::string Name(const TcpAddress& address);

// A listening socket and the address it got.
struct TcpListener {
  UniqueFd fd;
  TcpAddress address;
};

// Listens on a free port of an interface: a dotted IPv4 address, or a choice of names (interface_address.h).
Result<TcpListener> ListenTcp(const std::string& interface);
// Connects, with TCP_NODELAY set. kUnavailable when the connection is refused or the host cannot be reached.
Result<UniqueFd> ConnectTcp(const TcpAddress& address, Deadline deadline);
// Makes small messages leave at once (TCP_NODELAY).
void SetNoDelay(int socket);

// `name` is given without the leading zero byte of the abstract namespace. kUnavailable when the name is
// taken.
Result<UniqueFd> ListenAbstract(const std::string& name);
// kPeerFailed when nobody listens under that name.
Result<UniqueFd> ConnectAbstract(const std::string& name);

// Returns the next connection; kTimeout at the deadline.
Result<UniqueFd> Accept(int listener, Deadline deadline);

// Sends or receives exactly these bytes. kPeerFailed when the peer closed, kTimeout at the deadline.
Status SendAll(int socket, std::span<const std::byte> bytes, Deadline deadline);
Status ReceiveAll(int socket, std::span<std::byte> bytes, Deadline deadline);

// Hands a descriptor to the peer together with one byte; the caller keeps its own.
Status SendDescriptor(int socket, int descriptor);
Result<UniqueFd> ReceiveDescriptor(int socket, Deadline deadline);

// kInvalidArgument unless the process at the other end of a unix socket runs under our user id.
Status CheckPeerUser(int socket);

// Cryptographically random bytes from getrandom(2). Blocks only early in the system's boot.
void FillRandom(std::span<std::byte> bytes);

}  // namespace dynamiccl
