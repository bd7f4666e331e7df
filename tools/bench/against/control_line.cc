// SPDX-License-Identifier: Apache-2.0
// Stream sockets of the Unix domain, read line by line.
#include "tools/bench/against/control_line.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>

namespace dynamiccl {
namespace {

Result<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path))
    return MakeError(ErrorKind::kInvalidArgument, "socket path '{}' is too long", path);
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return address;
}

const sockaddr* Generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

// Waits until data or the end of the connection can be read. Returns false if neither came within `limit`.
bool Readable(int fd, std::chrono::milliseconds limit) {
  pollfd ready{fd, POLLIN, 0};
  int got = 0;
  do {
    got = ::poll(&ready, 1, static_cast<int>(limit.count()));
  } while (got < 0 && errno == EINTR);
  return got > 0;
}

}  // namespace

Result<ControlLine> ControlLine::Connect(const std::string& path) {
  DYNAMICCL_TRY(const sockaddr_un address, AddressOf(path));
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid() || ::connect(fd.get(), Generic(address), sizeof(address)) != 0)
    return MakeError(ErrorKind::kUnavailable, "cannot connect to {}: {}", path, ErrnoText(errno));
  return ControlLine(std::move(fd));
}

Status ControlLine::Send(std::string_view line) {
  const std::string text = std::string(line) + "\n";
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t n = ::send(fd_.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return MakeError(ErrorKind::kPeerFailed, "control line: {}", ErrnoText(errno));
    sent += static_cast<size_t>(n);
  }
  return {};
}

Result<std::string> ControlLine::Read(std::chrono::milliseconds limit) {
  while (pending_.find('\n') == std::string::npos) {
    if (!Readable(fd_.get(), limit))
      return MakeError(ErrorKind::kTimeout, "no answer in {} ms", limit.count());
    char piece[512];
    const ssize_t n = ::recv(fd_.get(), piece, sizeof(piece), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return MakeError(ErrorKind::kPeerFailed, "the other side of the control line is gone");
    pending_.append(piece, static_cast<size_t>(n));
  }
  const size_t end = pending_.find('\n');
  std::string line = pending_.substr(0, end);
  pending_.erase(0, end + 1);
  return line;
}

Result<ControlListener> ControlListener::Open(const std::string& path) {
  DYNAMICCL_TRY(const sockaddr_un address, AddressOf(path));
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  constexpr int kBacklog = 64;
  if (!fd.valid() || ::bind(fd.get(), Generic(address), sizeof(address)) != 0 ||
      ::listen(fd.get(), kBacklog) != 0)
    return MakeError(ErrorKind::kUnavailable, "cannot listen at {}: {}", path, ErrnoText(errno));
  return ControlListener(std::move(fd), path);
}

Result<ControlLine> ControlListener::Accept(std::chrono::milliseconds limit) {
  if (!Readable(fd_.get(), limit))
    return MakeError(ErrorKind::kTimeout, "nobody came in {} ms", limit.count());
  UniqueFd fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!fd.valid()) return MakeError(ErrorKind::kUnavailable, "accept: {}", ErrnoText(errno));
  return ControlLine(std::move(fd));
}

}  // namespace dynamiccl
