// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <memory>

#include "src/base/job_fail_point.h"

namespace dynamiccl {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

// The system reports after 30 s that a peer's machine has vanished. Until then a rank that has pledged waits,
// because no time-out of its own may decide.
constexpr unsigned kDeadPeerMs = 30'000;

Result<Addresses> Resolve(const std::string& host, uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (code != 0) return MakeError(ErrorKind::kNotFound, "{}: {}", host, ::gai_strerror(code));
  return Addresses(found, &::freeaddrinfo);
}

ControlSocket NewSocket(const addrinfo& address) {
  return ControlSocket(UniqueFd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
}

// Messages are short and waited for, so they are sent at once. A peer that has died without closing the
// connection is noticed after kDeadPeerMs.
void SetOptions(int fd) {
  const int on = 1;
  const int idle_s = 5;
  const unsigned dead_ms = kDeadPeerMs;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle_s, sizeof(idle_s));
  ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &dead_ms, sizeof(dead_ms));
}

// Adds the numeric address and port that the socket was bound to.
Result<ListeningSocket> DescribeListening(ControlSocket fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  if (::getsockname(fd.get(), plain, &length) != 0 ||
      ::getnameinfo(plain, length, host, sizeof(host), port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) !=
          0) {
    return MakeError(ErrorKind::kUnavailable, "the control plane's own address cannot be read");
  }
  ListeningSocket socket{std::move(fd), host, 0};
  std::from_chars(port, port + std::char_traits<char>::length(port), socket.port);
  return socket;
}

// Returns false if the descriptor is not ready in time.
bool WaitFor(int fd, short events, int timeout_ms) {
  pollfd waiting{fd, events, 0};
  int ready = 0;
  do {
    ready = ::poll(&waiting, 1, timeout_ms);
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

// Returns 0 once connected, else the error number.
int FinishConnect(int fd, const addrinfo& address, int timeout_ms) {
  if (::connect(fd, address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!WaitFor(fd, POLLOUT, timeout_ms)) return ETIMEDOUT;
  int error = 0;
  socklen_t length = sizeof(error);
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

Status SendBytesOf(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes = bytes.subspan(static_cast<size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      // A message is far smaller than a socket buffer, so a peer with a full buffer is not reading.
      if (!WaitFor(fd, POLLOUT, 1000)) return MakeError(ErrorKind::kTimeout, "a peer does not read");
    } else if (errno != EINTR) {
      return MakeError(ErrorKind::kPeerFailed, "send: {}", ErrnoText(errno));
    }
  }
  return {};
}

}  // namespace

Result<ListeningSocket> Listen(const std::string& host, uint16_t port) {
  DYNAMICCL_TRY(const Addresses addresses, Resolve(host, port, AI_PASSIVE));
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    ControlSocket fd = NewSocket(*address);
    const int on = 1;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (fd.valid() && ::bind(fd.get(), address->ai_addr, address->ai_addrlen) == 0 &&
        ::listen(fd.get(), SOMAXCONN) == 0) {
      return DescribeListening(std::move(fd));
    }
  }
  return MakeError(ErrorKind::kUnavailable, "cannot listen on {}:{}: {}", host, port, ErrnoText(errno));
}

Result<ControlSocket> Accept(int listening_fd) {
  ControlSocket fd(UniqueFd(::accept4(listening_fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)));
  if (!fd.valid()) {
    // A connection that was broken off before it was accepted is no longer there.
    const bool none = errno == EAGAIN || errno == EWOULDBLOCK || errno == ECONNABORTED;
    return MakeError(none ? ErrorKind::kNotFound : ErrorKind::kUnavailable, "accept: {}", ErrnoText(errno));
  }
  SetOptions(fd.get());
  return fd;
}

Result<ControlSocket> Connect(const std::string& host, uint16_t port, int timeout_ms) {
  DYNAMICCL_TRY(const Addresses addresses, Resolve(host, port, 0));
  bool refused = true;
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    ControlSocket fd = NewSocket(*address);
    const int error = fd.valid() ? FinishConnect(fd.get(), *address, timeout_ms) : errno;
    if (error == 0) {
      SetOptions(fd.get());
      return fd;
    }
    refused = refused && error == ECONNREFUSED;
  }
  return MakeError(refused ? ErrorKind::kPeerFailed : ErrorKind::kUnavailable, "no connection to {}:{}", host,
                   port);
}

Status SendAll(int fd, std::span<const std::byte> bytes) {
  const SendMessage other = g_send_message.load(std::memory_order_relaxed);
  return other != nullptr ? other(fd, bytes, SendBytesOf) : SendBytesOf(fd, bytes);
}

Result<std::pair<std::string, uint16_t>> ParseHostPort(const std::string& text) {
  const size_t colon = text.rfind(':');
  uint16_t port = 0;
  if (colon != std::string::npos) std::from_chars(text.data() + colon + 1, text.data() + text.size(), port);
  if (port == 0) return MakeError(ErrorKind::kInvalidArgument, "'{}' is not host:port", text);
  std::string host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return std::pair{host, port};
}

}  // namespace dynamiccl
