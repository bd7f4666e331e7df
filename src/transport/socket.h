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
  // Returns the milliseconds left, for poll(); at least 0.
  int RemainingMs() const;
};

// While this object lives, a wait of this thread ends with kUnavailable within 20 ms after `*cancelled`
// becomes true. ncclCommAbort uses it to free a rank that waits for peers. Scopes do not nest.
class CancelScope {
 public:
  explicit CancelScope(const std::atomic<bool>& cancelled);
  ~CancelScope();
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;

  // Returns whether the calling thread should stop waiting and return the error GivenUp().
  static bool Cancelled();
  static tl::unexpected<Error> GivenUp();
  // Returns when a wait of this thread on a condition variable should check Cancelled() again.
  static std::chrono::system_clock::time_point NextLook();
};

// An IPv4 address and a port, both in host byte order.
struct TcpAddress {
  uint32_t ipv4 = 0;
  uint16_t port = 0;
};
// Returns for example "10.0.0.1:4711".
std::string Name(const TcpAddress& address);

// A listening socket and the address that the system gave it.
struct TcpListener {
  UniqueFd fd;
  TcpAddress address;
};

// Listens on a free port of an interface. `interface` is a dotted IPv4 address or a choice of names
// (interface_address.h).
Result<TcpListener> ListenTcp(const std::string& interface);
// Connects, and sets TCP_NODELAY. Returns kUnavailable when the connection is refused or the host cannot be
// reached.
Result<UniqueFd> ConnectTcp(const TcpAddress& address, Deadline deadline);
// Sets TCP_NODELAY, so that small messages are sent at once.
void SetNoDelay(int socket);

// Listens on an abstract unix socket. `name` lacks the leading zero byte of the abstract namespace. Returns
// kUnavailable when the name is taken.
Result<UniqueFd> ListenAbstract(const std::string& name);
// Connects to an abstract unix socket. Returns kPeerFailed when nobody listens under that name.
Result<UniqueFd> ConnectAbstract(const std::string& name);

// Returns the next connection, or kTimeout at the deadline.
Result<UniqueFd> Accept(int listener, Deadline deadline);

// These send or receive exactly these bytes. They return kPeerFailed when the peer closed, kTimeout at the
// deadline.
Status SendAll(int socket, std::span<const std::byte> bytes, Deadline deadline);
Status ReceiveAll(int socket, std::span<std::byte> bytes, Deadline deadline);

// Sends a descriptor to the peer together with one byte. The caller's own descriptor stays open.
Status SendDescriptor(int socket, int descriptor);
Result<UniqueFd> ReceiveDescriptor(int socket, Deadline deadline);

// Returns kInvalidArgument unless the process at the other end of a unix socket runs under our user id.
Status CheckPeerUser(int socket);

// Fills the bytes with cryptographically random ones from getrandom(2). It blocks only early in the system's
// boot.
void FillRandom(std::span<std::byte> bytes);

}  // namespace dynamiccl
