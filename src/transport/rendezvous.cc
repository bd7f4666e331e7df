// SPDX-License-Identifier: Apache-2.0
// The two messages, little-endian:
//   rank -> root  {u64 magic, token, u32 n_ranks, u32 rank, u32 size, u32 unused, payload}
//   root -> rank  {u32 0, u32 size, n_ranks x (u32 size, payload)}  or  {u32 error kind + 1, u32 size, text}
// The root collects one greeting from each rank, and then answers all ranks at once.
#include "src/transport/rendezvous.h"

#include <fcntl.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "src/base/byte_codec.h"

namespace dynamiccl {
namespace {

constexpr uint64_t kMagic = 0x315a5652'4c434348;  // "HCCLRVZ1"
// In bytes, the most that a rank's payload may have. An endpoint has about 100 bytes.
constexpr uint32_t kMaxPayload = 1 << 16;
// In bytes, the most that the text of a refusal may have.
constexpr size_t kMaxRefusal = 4096;
// More ranks than any job has. The root refuses a larger number, which must come from a damaged greeting.
constexpr uint32_t kMaxRanks = 1 << 20;
// A refusal names at most this many missing ranks, and only counts further ones.
constexpr size_t kMaxNamed = 16;
// In milliseconds: how long a stranger, such as a port scanner, may hold up the others without sending
// anything.
constexpr int64_t kHelloTimeoutMs = 2000;
// In milliseconds. The root answers at its own deadline. Ranks wait this much longer, so that they learn
// which ranks are missing.
constexpr int64_t kAnswerGraceMs = 2000;

// The greeting of a rank as it is on the wire, without the payload that follows it.
struct Hello {
  uint64_t magic = kMagic;
  RendezvousToken token{};
  uint32_t n_ranks = 0;
  uint32_t rank = 0;
  uint32_t payload_bytes = 0;
  uint32_t unused = 0;
};
static_assert(sizeof(Hello) == 48);

// A rank that has sent its greeting and waits for the answer.
struct Arrival {
  UniqueFd socket;
  std::vector<std::byte> payload;
};

// Serves one rendezvous. Its thread owns it, and it lives as long as the thread.
class Root {
 public:
  Root(UniqueFd listener, const RendezvousToken& token, int64_t timeout_ms)
      : listener_(std::move(listener)), token_(token), timeout_ms_(timeout_ms) {}

  void Serve() {
    // There is no deadline for the first rank, because a program may make the unique id long before it uses
    // the id.
    Deadline deadline{INT64_MAX};
    while (arrivals_.empty() || arrivals_.size() < n_ranks_) {
      // The deadline is checked here, because strangers who keep connecting must not extend it.
      if (deadline.RemainingMs() == 0) return Refuse(ErrorKind::kTimeout, MissingRanks());
      auto socket = Accept(listener_.get(), deadline);
      if (!socket && socket.error().kind == ErrorKind::kTimeout && arrivals_.empty()) continue;
      if (!socket) return Refuse(ErrorKind::kTimeout, MissingRanks());
      if (auto problem = Admit(std::move(*socket), deadline))
        return Refuse(ErrorKind::kInvalidArgument, *problem);
      if (arrivals_.size() == 1 && deadline.at_ns == INT64_MAX) deadline = Deadline::After(timeout_ms_);
    }
    Answer();
  }

 private:
  // Reads one greeting. It drops a stranger and returns nothing. If a rank made a mistake it returns a text,
  // and the whole rendezvous fails: only ranks know the token, so one of the ranks is wrong.
  std::optional<std::string> Admit(UniqueFd socket, Deadline end) {
    const Deadline deadline{std::min(end.at_ns, Deadline::After(kHelloTimeoutMs).at_ns)};
    Hello hello;
    if (!ReceiveAll(socket.get(), std::as_writable_bytes(std::span(&hello, 1)), deadline)) return {};
    if (hello.magic != kMagic || hello.token != token_ || hello.payload_bytes > kMaxPayload) return {};
    Arrival arrival{std::move(socket), std::vector<std::byte>(hello.payload_bytes)};
    if (!ReceiveAll(arrival.socket.get(), arrival.payload, deadline)) return {};
    if (arrivals_.empty()) n_ranks_ = hello.n_ranks;
    auto mistake = MistakeOf(hello);
    // A rank whose greeting is wrong is kept as well, so that it receives the reason.
    arrivals_.emplace(hello.rank, std::move(arrival));
    return mistake;
  }

  std::optional<std::string> MistakeOf(const Hello& hello) const {
    if (hello.n_ranks > kMaxRanks || hello.rank >= hello.n_ranks) {
      return fmt::format("a process came as rank {} of {}", hello.rank, hello.n_ranks);
    }
    if (hello.n_ranks != n_ranks_) {
      return fmt::format("rank {} was started with {} ranks, others with {}", hello.rank, hello.n_ranks,
                         n_ranks_);
    }
    if (arrivals_.contains(hello.rank)) return fmt::format("two processes came as rank {}", hello.rank);
    return {};
  }

  std::string MissingRanks() const {
    std::string missing;
    size_t named = 0;
    for (uint32_t rank = 0; rank < n_ranks_ && named < kMaxNamed; ++rank) {
      if (arrivals_.contains(rank)) continue;
      missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
      ++named;
    }
    const size_t others = n_ranks_ - arrivals_.size() - named;
    if (others > 0) missing += fmt::format(" and {} more", others);
    return fmt::format("of {} ranks these did not come within {} ms: {}", n_ranks_, timeout_ms_, missing);
  }

  void Refuse(ErrorKind kind, const std::string& text) {
    ByteWriter answer;
    answer.Put(static_cast<uint32_t>(kind) + 1);
    answer.Put(static_cast<uint32_t>(text.size()));
    answer.PutBytes(std::as_bytes(std::span(text)));
    SendToAll(answer.buffer());
  }

  void Answer() {
    ByteWriter table;
    for (const auto& [rank, arrival] : arrivals_) {
      table.Put(static_cast<uint32_t>(arrival.payload.size()));
      table.PutBytes(arrival.payload);
    }
    ByteWriter answer;
    answer.Put(uint32_t{0});
    answer.Put(static_cast<uint32_t>(table.buffer().size()));
    answer.PutBytes(table.buffer());
    SendToAll(answer.buffer());
  }

  // Answers all ranks. If a rank died after its greeting, the others notice when they connect to it. Rank 0
  // comes last: the root mostly runs in the process of rank 0, and rank 0 may end the process once it has its
  // answer.
  void SendToAll(std::span<const std::byte> bytes) {
    const Deadline deadline = Deadline::After(kHelloTimeoutMs);
    for (auto arrival = arrivals_.rbegin(); arrival != arrivals_.rend(); ++arrival) {
      (void)SendAll(arrival->second.socket.get(), bytes, deadline);
    }
  }

  UniqueFd listener_;
  RendezvousToken token_;
  int64_t timeout_ms_;
  uint32_t n_ranks_ = 0;
  std::multimap<uint32_t, Arrival>
      arrivals_;  // by rank; a rank has two entries only in a rendezvous that is refused
};

Status Greet(int socket, const RendezvousTicket& ticket, std::span<const std::byte> payload,
             Deadline deadline) {
  Hello hello;
  hello.token = ticket.token;
  hello.n_ranks = static_cast<uint32_t>(ticket.n_ranks);
  hello.rank = static_cast<uint32_t>(ticket.rank);
  hello.payload_bytes = static_cast<uint32_t>(payload.size());
  DYNAMICCL_CHECK_OK(SendAll(socket, std::as_bytes(std::span(&hello, 1)), deadline));
  return SendAll(socket, payload, deadline);
}

tl::unexpected<Error> RefusalOf(uint32_t code, std::span<const std::byte> body) {
  const std::string text(reinterpret_cast<const char*>(body.data()), body.size());
  // If this build does not know the error kind, the answer is still treated as a refusal.
  const uint32_t kind = std::min(code - 1, static_cast<uint32_t>(ErrorKind::kInternal));
  return MakeError(static_cast<ErrorKind>(kind), "rendezvous: {}", text);
}

// Reads the root's answer. The size of the answer is checked before memory is allocated.
Result<std::vector<std::vector<std::byte>>> HearAnswer(int socket, size_t n_ranks, Deadline deadline) {
  std::array<uint32_t, 2> head{};
  DYNAMICCL_CHECK_OK(ReceiveAll(socket, std::as_writable_bytes(std::span(head)), deadline));
  const size_t most = head[0] != 0 ? kMaxRefusal : n_ranks * (sizeof(uint32_t) + kMaxPayload);
  if (head[1] > most) return MakeError(ErrorKind::kCorrupt, "rendezvous: an answer of {} bytes", head[1]);
  std::vector<std::byte> body(head[1]);
  DYNAMICCL_CHECK_OK(ReceiveAll(socket, body, deadline));
  if (head[0] != 0) return RefusalOf(head[0], body);
  ByteReader reader(body);
  std::vector<std::vector<std::byte>> payloads;
  for (size_t rank = 0; rank < n_ranks; ++rank) {
    const auto bytes = reader.GetBytes(reader.Get<uint32_t>());
    payloads.emplace_back(bytes.begin(), bytes.end());
  }
  if (reader.ok() && reader.remaining() == 0) return payloads;
  return MakeError(ErrorKind::kCorrupt, "rendezvous: the root's answer is not that of {} ranks", n_ranks);
}

}  // namespace

Result<TcpAddress> StartRendezvousRoot(const std::string& interface_address, const RendezvousToken& token,
                                       int64_t timeout_ms) {
  DYNAMICCL_TRY(TcpListener listener, ListenTcp(interface_address));
  const TcpAddress address = listener.address;
  std::thread([root = Root(std::move(listener.fd), token, timeout_ms)]() mutable { root.Serve(); }).detach();
  return address;
}

Status ServeRendezvous(int listener, const RendezvousToken& token, int64_t timeout_ms) {
  UniqueFd own(::fcntl(listener, F_DUPFD_CLOEXEC, 0));
  if (!own.valid()) return MakeError(ErrorKind::kUnavailable, "cannot duplicate a listening socket");
  std::thread([root = Root(std::move(own), token, timeout_ms)]() mutable { root.Serve(); }).detach();
  return {};
}

Result<std::vector<std::vector<std::byte>>> MeetAtRendezvous(const RendezvousTicket& ticket,
                                                             std::span<const std::byte> payload,
                                                             int64_t timeout_ms) {
  const Deadline deadline = Deadline::After(timeout_ms + kAnswerGraceMs);
  auto connected = ConnectTcp(ticket.root, deadline);
  if (!connected) {
    if (connected.error().kind == ErrorKind::kUnavailable) connected.error().kind = ErrorKind::kPeerFailed;
    return WithHint(Wrap(connected.error(), fmt::format("rank {}: rendezvous", ticket.rank)),
                    "the process that called ncclGetUniqueId must be alive until all ranks have joined");
  }
  DYNAMICCL_CHECK_OK(Greet(connected->get(), ticket, payload, deadline));
  return HearAnswer(connected->get(), static_cast<size_t>(ticket.n_ranks), deadline);
}

}  // namespace dynamiccl
