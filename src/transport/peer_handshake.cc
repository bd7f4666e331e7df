// SPDX-License-Identifier: Apache-2.0
// The handshake, little-endian:
//   listener  -> connector  {magic, version, nonce}                                  32 bytes
//   connector -> listener   {magic, version, purpose, from, to, nonce, proof}        72 bytes
//   listener  -> connector  {proof}                                                  32 bytes
// A proof is an HMAC-SHA-256 over everything that both sides sent, keyed by the secrets of both endpoints.
// The nonces are fresh, so nobody can replay an old conversation.
#include "src/transport/peer_handshake.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "src/base/byte_codec.h"
#include "src/base/sha256.h"

namespace dynamiccl {
namespace {

constexpr uint64_t kMagic = 0x31524545'504c4348;  // "HCLPEER1"
constexpr uint32_t kVersion = 1;
// In milliseconds: how long a stranger, such as a port scanner, may hold up the others without sending
// anything.
constexpr int64_t kHelloTimeoutMs = 2000;

using Nonce = std::array<uint8_t, 16>;

// The listener's first message of the handshake.
struct Challenge {
  uint64_t magic = kMagic;
  uint32_t version = kVersion;
  uint32_t unused = 0;
  Nonce nonce{};
};
static_assert(sizeof(Challenge) == 32);

// The connector's answer.
struct Hello {
  uint64_t magic = kMagic;
  uint32_t version = kVersion;
  uint32_t purpose = 0;
  uint32_t from = 0;
  uint32_t to = 0;
  Nonce nonce{};
  Sha256Digest proof{};
};
static_assert(sizeof(Hello) == 72);

// Returns the proof of one side, over all that both sides sent. `side` makes the two proofs differ, so that
// an attacker cannot send one side's proof back to it.
Sha256Digest ProofOf(std::string_view side, const Challenge& challenge, const Hello& hello,
                     const std::vector<Endpoint>& endpoints) {
  ByteWriter key;
  key.Put(endpoints[hello.to].secret);
  key.Put(endpoints[hello.from].secret);
  ByteWriter said;
  said.PutText(side);
  said.Put(challenge.nonce);
  said.Put(hello.version);
  said.Put(hello.purpose);
  said.Put(hello.from);
  said.Put(hello.to);
  said.Put(hello.nonce);
  return HmacSha256(key.buffer(), said.buffer());
}

template <typename T>
Status Send(int socket, const T& message, Deadline deadline) {
  return SendAll(socket, std::as_bytes(std::span(&message, 1)), deadline);
}

template <typename T>
Result<T> Receive(int socket, Deadline deadline) {
  T message;
  DYNAMICCL_CHECK_OK(ReceiveAll(socket, std::as_writable_bytes(std::span(&message, 1)), deadline));
  return message;
}

// Makes whoever connected prove to be a member. Returns kInvalidArgument for a stranger.
Result<MemberConnection> Admit(UniqueFd socket, const std::vector<Endpoint>& endpoints, int self,
                               Deadline deadline) {
  Challenge challenge;
  FillRandom(std::as_writable_bytes(std::span(challenge.nonce)));
  DYNAMICCL_CHECK_OK(Send(socket.get(), challenge, deadline));
  DYNAMICCL_TRY(const Hello hello, Receive<Hello>(socket.get(), deadline));
  const bool known = hello.magic == kMagic && hello.version == kVersion && hello.from < endpoints.size() &&
                     hello.to == static_cast<uint32_t>(self) && hello.purpose <= 1;
  if (!known || !DigestsEqual(hello.proof, ProofOf("connector", challenge, hello, endpoints))) {
    return MakeError(ErrorKind::kInvalidArgument, "a stranger connected");
  }
  DYNAMICCL_CHECK_OK(Send(socket.get(), ProofOf("listener", challenge, hello, endpoints), deadline));
  SetNoDelay(socket.get());
  return MemberConnection{std::move(socket), static_cast<int>(hello.from),
                          static_cast<ConnectionPurpose>(hello.purpose)};
}

}  // namespace

Result<UniqueFd> ConnectToMember(const std::vector<Endpoint>& endpoints, int from, int to,
                                 ConnectionPurpose purpose, Deadline deadline) {
  const TcpAddress& address = endpoints[static_cast<size_t>(to)].address;
  auto connected = ConnectTcp(address, deadline);
  if (!connected) {
    if (connected.error().kind == ErrorKind::kUnavailable) connected.error().kind = ErrorKind::kPeerFailed;
    return WithHint(
        Wrap(connected.error(), fmt::format("rank {}, which is on another host", to)),
        "set HOSTCCL_INTERFACE on all ranks to an interface or address that the other hosts can reach");
  }
  const int socket = connected->get();
  DYNAMICCL_TRY(const Challenge challenge, Receive<Challenge>(socket, deadline));
  Hello hello{.purpose = static_cast<uint32_t>(purpose),
              .from = static_cast<uint32_t>(from),
              .to = static_cast<uint32_t>(to)};
  FillRandom(std::as_writable_bytes(std::span(hello.nonce)));
  hello.proof = ProofOf("connector", challenge, hello, endpoints);
  DYNAMICCL_CHECK_OK(Send(socket, hello, deadline));
  DYNAMICCL_TRY(const Sha256Digest proof, Receive<Sha256Digest>(socket, deadline));
  const bool right = challenge.magic == kMagic && challenge.version == kVersion &&
                     DigestsEqual(proof, ProofOf("listener", challenge, hello, endpoints));
  if (right) return std::move(*connected);
  return MakeError(ErrorKind::kPeerFailed, "what listens at {} is not rank {} of this communicator",
                   Name(address), to);
}

Result<MemberConnection> AcceptMember(int listener, const std::vector<Endpoint>& endpoints, int self,
                                      Deadline deadline) {
  for (;;) {
    DYNAMICCL_TRY(UniqueFd socket, Accept(listener, deadline));
    const Deadline patience{std::min(deadline.at_ns, Deadline::After(kHelloTimeoutMs).at_ns)};
    auto member = Admit(std::move(socket), endpoints, self, patience);
    if (member) return member;
    if (deadline.RemainingMs() == 0)
      return MakeError(ErrorKind::kTimeout, "strangers came, but no rank in time");
  }
}

}  // namespace dynamiccl
