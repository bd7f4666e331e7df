// SPDX-License-Identifier: Apache-2.0
// Tests the handshake between ranks on different hosts against a stranger at the other end. Input: byte 0
// even: the bytes of a stranger that connects to a rank; odd: the bytes of a stranger that listens where a
// rank connects.
#include <sys/socket.h>

#include <thread>

#include "src/transport/peer_handshake.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using namespace dynamiccl;

// The time limit of each step, 10 s. A step that takes longer never ends.
Deadline InTime() {
  return Deadline::After(10'000);
}

// Makes close() reset the connection, so that no port stays in TIME_WAIT for a minute.
void CloseAtOnce(int socket) {
  const linger at_once{1, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

std::vector<Endpoint> Members(const TcpAddress& listener) {
  std::vector<Endpoint> endpoints(3);
  endpoints[1].secret = {1, 2, 3};
  for (Endpoint& endpoint : endpoints) endpoint.address = listener;
  return endpoints;
}

// The stranger sends everything before the rank reads, so the rank never waits for it.
void Accepted(const TcpListener& listener, std::span<const std::byte> said) {
  const auto stranger = ConnectTcp(listener.address, InTime());
  fuzz::Require(stranger.has_value(), "loopback connects");
  CloseAtOnce(stranger->get());
  fuzz::Require(SendAll(stranger->get(), said, InTime()).has_value(), "the system takes it");
  (void)::shutdown(stranger->get(), SHUT_WR);
  const auto member = AcceptMember(listener.fd.get(), Members(listener.address), 1, Deadline::After(0));
  fuzz::Require(!member, "nobody without the secret is a member");
}

void Connected(const TcpListener& listener, std::span<const std::byte> said) {
  std::thread stranger([&] {
    const auto socket = Accept(listener.fd.get(), InTime());
    fuzz::Require(socket.has_value(), "a rank connects");
    CloseAtOnce(socket->get());
    (void)SendAll(socket->get(), said, InTime());
    (void)::shutdown(socket->get(), SHUT_WR);
    std::byte heard[256];
    while (::recv(socket->get(), heard, sizeof(heard), 0) > 0) {
    }
  });
  {
    const auto member = ConnectToMember(Members(listener.address), 2, 1, ConnectionPurpose::kRelay, InTime());
    fuzz::Require(!member, "who does not know the secret is no member");
  }
  stranger.join();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto listener = ListenTcp("127.0.0.1");
  fuzz::Require(listener.has_value(), "loopback listens");
  ByteReader input(fuzz::BytesOf(data, size));
  const bool connected = input.Get<uint8_t>() % 2 != 0;
  (connected ? Connected : Accepted)(*listener, fuzz::RestOf(input));
  return 0;
}
