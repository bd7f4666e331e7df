// SPDX-License-Identifier: Apache-2.0
// Rank 0 listens and sends the id to every rank that connects. The other ranks try to connect until rank 0
// answers.
#include "tools/bench/unique_id_exchange.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>

#include "src/base/unique_fd.h"

namespace dynamiccl {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;
// Pause before a rank tries again to connect to rank 0, which may not listen yet. It is short compared with
// the start of a process.
constexpr std::chrono::milliseconds kRetryPause{20};

int RemainingMs(SteadyTime deadline) {
  const auto left = deadline - std::chrono::steady_clock::now();
  return std::max(0, static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(left).count()));
}

// Integer value of an environment variable, or `fallback` if the variable is not set. It is an error when the
// variable is no number, or when it is not set and there is no fallback.
Result<int> IntegerVariable(const char* name, std::optional<int> fallback) {
  const char* text = std::getenv(name);
  if (text == nullptr && fallback) return *fallback;
  int value = 0;
  const char* end = text == nullptr ? nullptr : text + std::strlen(text);
  if (text != nullptr && std::from_chars(text, end, value).ptr == end && *text != '\0') return value;
  return WithHint(
      MakeError(ErrorKind::kInvalidArgument, "{} is {}", name, text == nullptr ? "not set" : text),
      "start the ranks with `dynamiccl run -n N -- ...`, torchrun, or another launcher that sets it");
}

Result<sockaddr_in> Resolve(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (code != 0)
    return MakeError(ErrorKind::kInvalidArgument, "MASTER_ADDR {}: {}", host, ::gai_strerror(code));
  sockaddr_in address = *reinterpret_cast<const sockaddr_in*>(found->ai_addr);
  ::freeaddrinfo(found);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

Status SendId(int fd, const ncclUniqueId& id) {
  if (::send(fd, &id, sizeof(id), MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof(id))) return {};
  return MakeError(ErrorKind::kPeerFailed, "sending the unique id: {}", ErrnoText(errno));
}

Result<UniqueFd> Listen(const RankPlace& place, const sockaddr_in& address) {
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
      ::listen(listener.get(), place.n_ranks - 1) == 0) {
    return listener;
  }
  const int failure = errno;
  return WithHint(MakeError(ErrorKind::kUnavailable, "rank 0 cannot listen at {}:{}: {}",
                            place.master_address, place.master_port, ErrnoText(failure)),
                  failure == EADDRNOTAVAIL ? "set MASTER_ADDR to an address of rank 0's host"
                                           : "set MASTER_PORT to a free port");
}

// Runs on rank 0: sends the id to all other ranks.
Status Serve(const RankPlace& place, const sockaddr_in& address, const ncclUniqueId& id,
             SteadyTime deadline) {
  DYNAMICCL_TRY(const UniqueFd listener, Listen(place, address));
  const int n_peers = place.n_ranks - 1;
  for (int served = 0; served < n_peers;) {
    pollfd ready{listener.get(), POLLIN, 0};
    if (::poll(&ready, 1, RemainingMs(deadline)) == 0) {
      return WithHint(
          MakeError(ErrorKind::kTimeout, "only {} of {} other ranks came for the unique id", served, n_peers),
          "look at the output of the other ranks; all need rank 0's MASTER_ADDR and MASTER_PORT");
    }
    const UniqueFd peer(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!peer.valid()) continue;
    DYNAMICCL_CHECK_OK(SendId(peer.get(), id));
    ++served;
  }
  return {};
}

// Connects to rank 0 and reads the id; tries again until the deadline.
Result<ncclUniqueId> Fetch(const RankPlace& place, const sockaddr_in& address, SteadyTime deadline) {
  std::string last = "no attempt";
  while (RemainingMs(deadline) > 0) {
    const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
      ncclUniqueId id{};
      if (::recv(fd.get(), &id, sizeof(id), MSG_WAITALL) == static_cast<ssize_t>(sizeof(id))) return id;
      last = "it sent no unique id";
    } else {
      last = ErrnoText(errno);
    }
    std::this_thread::sleep_for(kRetryPause);
  }
  return WithHint(
      MakeError(ErrorKind::kTimeout, "rank {} could not get the unique id from rank 0 at {}:{}: {}",
                place.rank, place.master_address, place.master_port, last),
      "check that rank 0 runs and that MASTER_ADDR and MASTER_PORT are its address and port");
}

}  // namespace

Result<RankPlace> RankPlaceFromEnvironment() {
  RankPlace place;
  DYNAMICCL_TRY(place.rank, IntegerVariable("RANK", std::nullopt));
  DYNAMICCL_TRY(place.n_ranks, IntegerVariable("WORLD_SIZE", std::nullopt));
  DYNAMICCL_TRY(place.local_rank, IntegerVariable("LOCAL_RANK", place.rank));
  DYNAMICCL_TRY(place.n_local_ranks, IntegerVariable("LOCAL_WORLD_SIZE", 1));
  DYNAMICCL_TRY(place.master_port, IntegerVariable("MASTER_PORT", std::nullopt));
  if (const char* address = std::getenv("MASTER_ADDR")) place.master_address = address;
  return place;
}

Result<ncclUniqueId> ExchangeUniqueId(const RankPlace& place, const ncclUniqueId& id,
                                      std::chrono::milliseconds timeout) {
  if (place.n_ranks == 1) return id;
  const SteadyTime deadline = std::chrono::steady_clock::now() + timeout;
  DYNAMICCL_TRY(const sockaddr_in address, Resolve(place.master_address, place.master_port));
  if (place.rank != 0) return Fetch(place, address, deadline);
  DYNAMICCL_CHECK_OK(Serve(place, address, id, deadline));
  return id;
}

}  // namespace dynamiccl
