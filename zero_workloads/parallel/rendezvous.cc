// SPDX-License-Identifier: Apache-2.0
// The protocol: every rank sends Hello to rank 0. Rank 0 answers every rank with Reply once all have
// connected or an error has occurred. Both ends are the same program, so the structures are sent as they are
// in memory. The magic number contains a version and reveals a different byte order.
#include "zero_workloads/parallel/rendezvous.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "src/base/unique_fd.h"

namespace dynamiccl::zero {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

// The letters "DZR" and version 1.
constexpr uint32_t kMagic = 0x445a5201;
// Pause between two attempts to reach a rank 0 that does not listen yet.
constexpr std::chrono::milliseconds kRetryPause(20);

// Rank 0 drops a connection that sends nothing for this long.
constexpr std::chrono::seconds kHelloPatience(5);

// The message with which a rank introduces itself to rank 0.
struct Hello {
  uint32_t magic = kMagic;
  int32_t rank = 0;
  int32_t world = 0;
  uint64_t run_fingerprint = 0;
};

// Rank 0's answer: NCCL's unique id, or an error that the receiving rank returns as its own. A message that
// does not fit is cut off.
struct Reply {
  uint32_t magic = kMagic;
  int32_t failed = 0;
  ErrorKind kind = ErrorKind::kInternal;
  ncclUniqueId id{};
  char message[256] = {};
};

int MillisecondsUntil(SteadyTime deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::max<int64_t>(0, left.count()));
}

template <typename T>
// Returns true if the whole structure came before the deadline and starts with the magic number.
bool Receive(int fd, T* value, SteadyTime deadline) {
  size_t have = 0;
  while (have < sizeof(T)) {
    pollfd waiting{fd, POLLIN, 0};
    if (poll(&waiting, 1, MillisecondsUntil(deadline)) <= 0) return false;
    const ssize_t got = recv(fd, reinterpret_cast<char*>(value) + have, sizeof(T) - have, 0);
    if (got <= 0) return false;
    have += static_cast<size_t>(got);
  }
  return value->magic == kMagic;
}

template <typename T>
// Sends a structure. It has a few hundred bytes, which always fit into an empty socket buffer.
bool SendAll(int fd, const T& value) {
  return send(fd, &value, sizeof(T), MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof(T));
}

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Result<AddressList> Resolve(const RankEnvironment& environment) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failure =
      getaddrinfo(environment.address.c_str(), std::to_string(environment.port).c_str(), &hints, &found);
  if (failure != 0) {
    return MakeError(ErrorKind::kInvalidArgument, "MASTER_ADDR={}: {}", environment.address,
                     gai_strerror(failure));
  }
  return AddressList(found, &freeaddrinfo);
}

Result<UniqueFd> Listen(const RankEnvironment& environment) {
  DYNAMICCL_TRY(const AddressList address, Resolve(environment));
  UniqueFd listener(socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int one = 1;
  setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  if (bind(listener.get(), address->ai_addr, address->ai_addrlen) != 0 ||
      listen(listener.get(), SOMAXCONN) != 0) {
    return WithHint(MakeError(ErrorKind::kUnavailable, "rank 0 cannot listen at {}:{}: {}",
                              environment.address, environment.port, ErrnoText(errno)),
                    "set MASTER_PORT to a free port");
  }
  return listener;
}

std::string MissingRanks(const std::map<int, UniqueFd>& present, int world) {
  std::string list;
  for (int rank = 1; rank < world; ++rank) {
    if (present.contains(rank)) continue;
    list += (list.empty() ? "" : ", ") + std::to_string(rank);
  }
  return list;
}

// Returns an error if a rank that connected does not belong to this run.
Status Compare(const Hello& own, const Hello& hello, const std::map<int, UniqueFd>& present) {
  if (hello.world != own.world) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "rank {} was started with a world size of {}, rank 0 with {}", hello.rank, hello.world,
                     own.world);
  }
  if (hello.rank <= 0 || hello.rank >= own.world || present.contains(hello.rank)) {
    return MakeError(ErrorKind::kInvalidArgument, "two processes were started as rank {}", hello.rank);
  }
  if (hello.run_fingerprint != own.run_fingerprint) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "rank {} was started with other options or another text than rank 0", hello.rank);
  }
  return {};
}

// Accepts ranks until all are present or an error occurs. In both cases `present` holds the ranks that
// connected.
Status Gather(int listener, const Hello& own, SteadyTime deadline, std::map<int, UniqueFd>* present) {
  while (static_cast<int>(present->size()) < own.world - 1) {
    pollfd waiting{listener, POLLIN, 0};
    if (poll(&waiting, 1, MillisecondsUntil(deadline)) <= 0) {
      return WithHint(MakeError(ErrorKind::kTimeout, "rank(s) {} of {} did not join rank 0 in time",
                                MissingRanks(*present, own.world), own.world),
                      "look at the output of those ranks; --join-timeout changes the time");
    }
    UniqueFd peer(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    Hello hello;
    // A connection that does not follow the protocol, or sends nothing (a port scanner), is dropped.
    const SteadyTime patience = std::min(deadline, std::chrono::steady_clock::now() + kHelloPatience);
    if (!peer.valid() || !Receive(peer.get(), &hello, patience)) continue;
    const Status fits = Compare(own, hello, *present);
    // A rank that does not belong to this run is stored under the key -1, so that it receives an answer too.
    (*present)[fits ? hello.rank : -1] = std::move(peer);
    DYNAMICCL_CHECK_OK(fits);
  }
  return {};
}

Result<ncclUniqueId> Serve(const RankEnvironment& environment, const Hello& own, const ncclUniqueId& id,
                           SteadyTime deadline) {
  DYNAMICCL_TRY(const UniqueFd listener, Listen(environment));
  std::map<int, UniqueFd> present;
  const Status gathered = Gather(listener.get(), own, deadline, &present);
  Reply reply;
  reply.id = id;
  if (!gathered) {
    reply.failed = 1;
    reply.kind = gathered.error().kind;
    gathered.error().message.copy(reply.message, sizeof(reply.message) - 1);
  }
  for (const auto& [rank, peer] : present) {
    if (!SendAll(peer.get(), reply) && gathered) {
      return MakeError(ErrorKind::kPeerFailed, "rank {} left while the ranks were joining", rank);
    }
  }
  if (!gathered) return tl::unexpected(gathered.error());
  return id;
}

Result<UniqueFd> Connect(const RankEnvironment& own, SteadyTime deadline) {
  DYNAMICCL_TRY(const AddressList address, Resolve(own));
  while (true) {
    UniqueFd peer(socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connect(peer.get(), address->ai_addr, address->ai_addrlen) == 0) return peer;
    const int failure = errno;
    if (MillisecondsUntil(deadline) == 0) {
      return WithHint(MakeError(ErrorKind::kTimeout, "rank {} could not reach rank 0 at {}:{}: {}", own.rank,
                                own.address, own.port, ErrnoText(failure)),
                      "check that rank 0 runs and that MASTER_ADDR and MASTER_PORT are its address and port");
    }
    std::this_thread::sleep_for(kRetryPause);
  }
}

Result<ncclUniqueId> Join(const RankEnvironment& own, const Hello& hello, SteadyTime deadline) {
  DYNAMICCL_TRY(const UniqueFd server, Connect(own, deadline));
  Reply reply;
  // Rank 0 answers at the latest at its own deadline. If rank 0 started later than this rank, that deadline
  // is later than this rank's, so this rank waits 5 s longer.
  const SteadyTime patience = deadline + std::chrono::seconds(5);
  if (!SendAll(server.get(), hello) || !Receive(server.get(), &reply, patience)) {
    return MakeError(ErrorKind::kPeerFailed, "rank 0 at {}:{} gave no answer to rank {}", own.address,
                     own.port, own.rank);
  }
  if (reply.failed != 0) return MakeError(reply.kind, "{}", reply.message);
  return reply.id;
}

}  // namespace

Result<ncclUniqueId> ExchangeUniqueId(const RankEnvironment& environment, const ncclUniqueId& id,
                                      const JoinSettings& join) {
  if (environment.world == 1) return id;
  const SteadyTime deadline = std::chrono::steady_clock::now() + join.timeout;
  const Hello own{kMagic, environment.rank, environment.world, join.run_fingerprint};
  return environment.rank == 0 ? Serve(environment, own, id, deadline) : Join(environment, own, deadline);
}

}  // namespace dynamiccl::zero
