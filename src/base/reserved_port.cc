// SPDX-License-Identifier: Apache-2.0
// Binding a port without listening on it. See reserved_port.h for why that keeps it free.
#include "src/base/reserved_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

namespace dynamiccl {

Result<ReservedPort> ReservedPort::Reserve() {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  if (!fd.valid() || ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
      ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return WithHint(MakeError(ErrorKind::kUnavailable, "no free TCP port on 127.0.0.1: {}", ErrnoText(errno)),
                    "end programs that hold many connections, or widen net.ipv4.ip_local_port_range");
  }
  return ReservedPort(std::move(fd), ntohs(address.sin_port));
}

}  // namespace dynamiccl
