// SPDX-License-Identifier: Apache-2.0
// System calls behind socket.h. All waiting goes through WaitFor, which obeys deadlines and cancellation.
#include "src/transport/socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "src/base/clock.h"
#include "src/transport/interface_address.h"

namespace dynamiccl {
namespace {

// Number of connections that may wait to be accepted. With more ranks on one host, the later ones wait in
// connect().
constexpr int kBacklog = 1024;

// Returns a kUnavailable error with the text of errno.
tl::unexpected<Error> SystemError(const std::string& what) {
  return MakeError(ErrorKind::kUnavailable, "{}: {}", what, ErrnoText(errno));
}

// The flag of the CancelScope in force on this thread; null without a scope.
thread_local const std::atomic<bool>* t_cancelled = nullptr;
// In milliseconds: the longest time that a wait goes on after it was cancelled.
constexpr int kCancelPollMs = 20;
// In milliseconds: how long a server waits when the process has no descriptor or memory left for a
// connection.
constexpr int kExhaustedMs = 50;

// Waits until `events` (POLLIN or POLLOUT) is possible or the peer hung up.
Status WaitFor(int fd, short events, Deadline deadline) {
  for (;;) {
    pollfd entry{fd, events, 0};
    const int remaining = deadline.RemainingMs();
    const int slice = t_cancelled == nullptr ? remaining : std::min(remaining, kCancelPollMs);
    const int ready = ::poll(&entry, 1, slice);
    if (ready > 0) return {};
    if (CancelScope::Cancelled()) return CancelScope::GivenUp();
    if (ready == 0 && slice < remaining) continue;
    if (ready == 0) return MakeError(ErrorKind::kTimeout, "no answer in time");
    if (errno != EINTR) return SystemError("poll");
  }
}

Result<UniqueFd> NewSocket(int domain) {
  UniqueFd fd(::socket(domain, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return SystemError("socket");
  return fd;
}

// A name in the abstract namespace. It begins with a zero byte in sun_path, and the address length says where
// it ends.
struct AbstractAddress {
  sockaddr_un address{};
  socklen_t length = 0;
};

AbstractAddress ToAbstract(const std::string& name) {
  AbstractAddress result;
  result.address.sun_family = AF_UNIX;
  const size_t size = std::min(name.size(), sizeof(result.address.sun_path) - 1);
  std::memcpy(result.address.sun_path + 1, name.data(), size);
  result.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
  return result;
}

sockaddr_in ToInet(const TcpAddress& address) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_addr.s_addr = htonl(address.ipv4);
  result.sin_port = htons(address.port);
  return result;
}

}  // namespace

CancelScope::CancelScope(const std::atomic<bool>& cancelled) {
  t_cancelled = &cancelled;
}

CancelScope::~CancelScope() {
  t_cancelled = nullptr;
}

tl::unexpected<Error> CancelScope::GivenUp() {
  return MakeError(ErrorKind::kUnavailable, "given up by ncclCommAbort");
}

std::chrono::system_clock::time_point CancelScope::NextLook() {
  if (t_cancelled == nullptr) return std::chrono::system_clock::time_point::max();
  return std::chrono::system_clock::now() + std::chrono::milliseconds(kCancelPollMs);
}

bool CancelScope::Cancelled() {
  return t_cancelled != nullptr && t_cancelled->load(std::memory_order_acquire);
}

Deadline Deadline::After(int64_t milliseconds) {
  return {MonotonicNanoseconds() + milliseconds * 1'000'000};
}

int Deadline::RemainingMs() const {
  const int64_t left = (at_ns - MonotonicNanoseconds() + 999'999) / 1'000'000;
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

std::string Name(const TcpAddress& address) {
  return fmt::format("{}.{}.{}.{}:{}", address.ipv4 >> 24, address.ipv4 >> 16 & 255, address.ipv4 >> 8 & 255,
                     address.ipv4 & 255, address.port);
}

Result<TcpListener> ListenTcp(const std::string& interface) {
  DYNAMICCL_TRY(const uint32_t ipv4, AddressOfInterface(interface));
  DYNAMICCL_TRY(UniqueFd fd, NewSocket(AF_INET));
  sockaddr_in address = ToInet({ipv4, 0});
  socklen_t length = sizeof(address);
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::listen(fd.get(), kBacklog) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return SystemError("cannot listen on " + interface);
  }
  return TcpListener{std::move(fd), {ntohl(address.sin_addr.s_addr), ntohs(address.sin_port)}};
}

// Connects without blocking, so that the deadline and cancellation apply. Then it makes the socket blocking
// again.
Result<UniqueFd> ConnectTcp(const TcpAddress& address, Deadline deadline) {
  DYNAMICCL_TRY(UniqueFd fd, NewSocket(AF_INET));
  const int flags = ::fcntl(fd.get(), F_GETFL);
  ::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK);
  const sockaddr_in target = ToInet(address);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&target), sizeof(target)) != 0) {
    if (errno != EINPROGRESS) return SystemError("cannot connect to " + Name(address));
    DYNAMICCL_CHECK_OK(WaitFor(fd.get(), POLLOUT, deadline));
    socklen_t length = sizeof(errno);
    int code = 0;
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &code, &length);
    errno = code;
    if (code != 0) return SystemError("cannot connect to " + Name(address));
  }
  ::fcntl(fd.get(), F_SETFL, flags);
  SetNoDelay(fd.get());
  return fd;
}

void SetNoDelay(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

Result<UniqueFd> ListenAbstract(const std::string& name) {
  DYNAMICCL_TRY(UniqueFd fd, NewSocket(AF_UNIX));
  const AbstractAddress address = ToAbstract(name);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.address), address.length) != 0 ||
      ::listen(fd.get(), kBacklog) != 0) {
    return SystemError("cannot listen on the abstract socket " + name);
  }
  return fd;
}

Result<UniqueFd> ConnectAbstract(const std::string& name) {
  DYNAMICCL_TRY(UniqueFd fd, NewSocket(AF_UNIX));
  const AbstractAddress address = ToAbstract(name);
  while (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.address), address.length) != 0) {
    if (errno == ECONNREFUSED) return MakeError(ErrorKind::kPeerFailed, "the peer at {} is gone", name);
    if (errno != EINTR) return SystemError("cannot connect to the abstract socket " + name);
  }
  return fd;
}

Result<UniqueFd> Accept(int listener, Deadline deadline) {
  DYNAMICCL_CHECK_OK(WaitFor(listener, POLLIN, deadline));
  UniqueFd fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (fd.valid()) return fd;
  const int error = errno;
  // The connection is still pending, so without a pause the caller would retry at full speed until
  // descriptors or memory are free.
  if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM)
    ::poll(nullptr, 0, kExhaustedMs);
  errno = error;
  return SystemError("accept");
}

Status SendAll(int socket, std::span<const std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      bytes = bytes.subspan(static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      DYNAMICCL_CHECK_OK(WaitFor(socket, POLLOUT, deadline));
    } else if (errno != EINTR) {
      return MakeError(ErrorKind::kPeerFailed, "a peer closed its connection: {}", ErrnoText(errno));
    }
  }
  return {};
}

Status ReceiveAll(int socket, std::span<std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    DYNAMICCL_CHECK_OK(WaitFor(socket, POLLIN, deadline));
    const ssize_t received = ::recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (received > 0) {
      bytes = bytes.subspan(static_cast<size_t>(received));
    } else if (received == 0 || (errno != EINTR && errno != EAGAIN)) {
      return MakeError(ErrorKind::kPeerFailed, "a peer closed its connection");
    }
  }
  return {};
}

// A descriptor travels as SCM_RIGHTS, which needs at least one byte of data beside it.
Status SendDescriptor(int socket, int descriptor) {
  char mark = 'd';
  iovec data{&mark, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
  while (::sendmsg(socket, &message, MSG_NOSIGNAL) < 0) {
    if (errno == EPIPE || errno == ECONNRESET) {
      return MakeError(ErrorKind::kPeerFailed, "a peer closed its connection before it took over memory");
    }
    if (errno != EINTR) return SystemError("cannot hand over a descriptor");
  }
  return {};
}

Result<UniqueFd> ReceiveDescriptor(int socket, Deadline deadline) {
  DYNAMICCL_CHECK_OK(WaitFor(socket, POLLIN, deadline));
  char mark = 0;
  iovec data{&mark, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  // There is room for one descriptor. Our ranks never send more; the kernel closes any further ones.
  message.msg_controllen = CMSG_LEN(sizeof(int));
  const ssize_t received = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  const cmsghdr* header = received == 1 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof(int))) {
    return MakeError(ErrorKind::kPeerFailed, "a peer closed its connection before it handed over its memory");
  }
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(header), sizeof(int));
  return UniqueFd(descriptor);
}

Status CheckPeerUser(int socket) {
  ucred credentials{};
  socklen_t length = sizeof(credentials);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0)
    return SystemError("SO_PEERCRED");
  if (credentials.uid == ::geteuid()) return {};
  return MakeError(ErrorKind::kInvalidArgument, "process {} of user {} is not one of our ranks",
                   credentials.pid, credentials.uid);
}

void FillRandom(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t filled = ::getrandom(bytes.data(), bytes.size(), 0);
    if (filled > 0) bytes = bytes.subspan(static_cast<size_t>(filled));
  }
}

}  // namespace dynamiccl
