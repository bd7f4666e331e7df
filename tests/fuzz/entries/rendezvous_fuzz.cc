// SPDX-License-Identifier: Apache-2.0
// Runs the rendezvous over loopback. Input: byte 0 even: the bytes that a rank receives from a false root;
// odd: the bytes that a root receives from two connections. The first of these sends 24 bytes. The first byte
// of each says whether it knows the token.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <thread>

#include "src/transport/rendezvous.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using namespace dynamiccl;

constexpr RendezvousToken kToken = {std::byte{7}};

// The time limit of each step, 10 s. A step that takes longer never ends.
Deadline InTime() {
  return Deadline::After(10'000);
}

// Lets a rank meet a root that sends `answer`.
void Answer(std::span<const std::byte> answer, int n_ranks) {
  static const auto listener = ListenTcp("127.0.0.1");
  fuzz::Require(listener.has_value(), "loopback listens");
  std::thread root([&] {
    const auto socket = Accept(listener->fd.get(), InTime());
    fuzz::Require(socket.has_value(), "a rank connects");
    const linger at_once{1, 0};
    std::byte greeting[48];
    (void)ReceiveAll(socket->get(), greeting, InTime());
    (void)SendAll(socket->get(), answer, InTime());
    (void)::shutdown(socket->get(), SHUT_WR);
    // Waits until the rank has closed the connection. The reset then keeps no port in TIME_WAIT for a minute.
    while (::recv(socket->get(), greeting, sizeof(greeting), 0) > 0) {
    }
    ::setsockopt(socket->get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  });
  const auto met = MeetAtRendezvous({listener->address, kToken, 0, n_ranks}, {}, 10'000);
  root.join();
  if (met) fuzz::Require(met->size() == static_cast<size_t>(n_ranks), "as many payloads as ranks");
  if (!met) fuzz::Require(met.error().kind <= ErrorKind::kInternal, "a kind of error that there is");
}

// Sends the greeting of a rank (Hello of rendezvous.cc): magic, token, then `said`. Returns the connection;
// an invalid one if the root has already ended.
UniqueFd Greet(const std::string& root, uint8_t options, std::span<const std::byte> said) {
  auto socket = ConnectAbstract(root);
  if (!socket) return {};
  ByteWriter greeting;
  greeting.Put(uint64_t{0x315a5652'4c434348} + (options % 8 == 0 ? 1 : 0));
  greeting.Put(kToken);
  greeting.PutBytes(said);
  (void)SendAll(socket->get(), greeting.buffer(), InTime());
  (void)::shutdown(socket->get(), SHUT_WR);
  return std::move(*socket);
}

void Listen(ByteReader& input) {
  static int roots = 0;
  const std::string root = fmt::format("hostccl-fuzz-{}-{}", ::getpid(), ++roots);
  {
    const auto listener = ListenAbstract(root);
    fuzz::Require(listener.has_value(), "a socket listens");
    fuzz::Require(ServeRendezvous(listener->get(), kToken, 1).has_value(), "a root starts");
  }
  UniqueFd greeted[3];
  const auto first = input.Get<uint8_t>();
  greeted[0] = Greet(root, first, input.GetBytes(std::min<size_t>(24, input.remaining())));
  const auto second = input.Get<uint8_t>();
  greeted[1] = Greet(root, second, fuzz::RestOf(input));
  // A third rank that cannot exist makes the root end, whatever the other two sent.
  greeted[2] = Greet(root, 1, std::array<std::byte, 16>{});
  std::byte answer[4096];
  for (const UniqueFd& socket : greeted) {
    while (socket.valid() && ::recv(socket.get(), answer, sizeof(answer), 0) > 0) {
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ByteReader input(fuzz::BytesOf(data, size));
  const auto options = input.Get<uint8_t>();
  if (options % 2 == 0) {
    Answer(fuzz::RestOf(input), 1 + options / 2 % 8);
  } else {
    Listen(input);
  }
  return 0;
}
