// SPDX-License-Identifier: Apache-2.0
// One rank as a process of its own that checks random calls against the serial reference:
// random_rank_program RANK N_RANKS READ_FD WRITE_FD BEHAVIOUR. The unique id comes through a pipe. The exit
// code is 0 if the rank behaves as expected.
//   random  random collectives and transfers
//   split   the same on communicators of the even and the odd ranks, and on one with the reversed order
//   abort   rank 1 aborts in the middle; the others must get ncclRemoteError
//   sums    AllReduce, AllGather and ReduceScatter with any number of ranks
//   die     rank 1 kills itself in the middle; the others must get ncclRemoteError
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "src/hostccl/communicator_init.h"
#include "tests/src/hostccl/random_call.h"
#include "tests/src/hostccl/three_collectives.h"

namespace {

using namespace dynamiccl;
using namespace dynamiccl::hostccl;
using dynamiccl::testing::CallBuffers;
using dynamiccl::testing::RandomCall;
using dynamiccl::testing::RandomCalls;
using CommunicatorPointer = std::shared_ptr<Communicator>;

constexpr int kRounds = 40;
// Rank 1 dies or aborts at this round, in the middle of its rounds.
constexpr int kFatalRound = 10;
constexpr uint64_t kSeed = 4711;

int Fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  return 1;
}

ncclResult_t RunOne(const CommunicatorPointer& communicator, const RandomCall& call, bool& right) {
  CallBuffers buffers(call, communicator->rank(), communicator->n_ranks());
  const CommunicatorPlan plan{communicator, {buffers.Operation()}, {}, {}};
  const ncclResult_t result = RunLaunch({&plan, 1});
  right = result != ncclSuccess || buffers.FirstMismatch() == -1;
  return result;
}

// Every rank sends its own data of just over 1 MiB to every rank.
bool ExchangeWithAll(const CommunicatorPointer& communicator) {
  constexpr size_t kBytes = (1 << 20) + 13;
  const int n = communicator->n_ranks();
  std::vector<std::vector<std::byte>> received(static_cast<size_t>(n), std::vector<std::byte>(kBytes));
  std::vector<std::byte> mine(kBytes, std::byte(communicator->rank() + 1));
  CommunicatorPlan plan{communicator, {}, {}, {}};
  for (int peer = 0; peer < n; ++peer) {
    plan.sends.push_back({peer, mine.data(), kBytes});
    plan.receives.push_back({peer, received[static_cast<size_t>(peer)].data(), kBytes});
  }
  if (RunLaunch({&plan, 1}) != ncclSuccess) return false;
  for (int peer = 0; peer < n; ++peer) {
    const std::vector<std::byte> expected(kBytes, std::byte(peer + 1));
    if (received[static_cast<size_t>(peer)] != expected) return false;
  }
  return true;
}

int RunRandom(const CommunicatorPointer& communicator) {
  RandomCalls calls(kSeed, communicator->n_ranks(), communicator->info().n_nodes);
  for (int round = 0; round < kRounds; ++round) {
    const RandomCall call = calls.Next();
    bool right = false;
    if (RunOne(communicator, call, right) != ncclSuccess) return Fail(communicator->failure());
    if (!right) return Fail(fmt::format("seed {} round {}: wrong: {}", kSeed, round, call.Describe()));
  }
  return ExchangeWithAll(communicator) ? 0 : Fail("transfers: wrong or failed");
}

int RunSplit(const CommunicatorPointer& communicator) {
  for (const bool reversed : {false, true}) {
    const int color = reversed ? 0 : communicator->rank() % 2;
    const int key = reversed ? -communicator->rank() : communicator->rank();
    const auto part = SplitCommunicator(*communicator, {color, key, communicator->config()});
    if (!part) return Fail(part.error().message);
    if (const int failed = RunRandom(*part)) return failed;
  }
  return RunRandom(communicator);
}

int RunFatal(const CommunicatorPointer& communicator, bool aborts) {
  RandomCalls calls(kSeed, communicator->n_ranks(), communicator->info().n_nodes);
  for (int round = 0; round < kRounds; ++round) {
    if (round == kFatalRound && communicator->rank() == 1) {
      if (!aborts) ::raise(SIGKILL);
      communicator->Abort();
      return 0;
    }
    bool right = false;
    const ncclResult_t result = RunOne(communicator, calls.Next(), right);
    if (!right) return Fail("wrong result");
    if (result == ncclRemoteError && round >= kFatalRound) return 0;
    if (result != ncclSuccess) return Fail(communicator->failure());
  }
  return Fail("the loss of rank 1 was not noticed");
}

int RunSums(const CommunicatorPointer& communicator) {
  for (const Protocol protocol : {Protocol::kSimple, Protocol::kLL, Protocol::kLL128}) {
    if (!dynamiccl::testing::ThreeCollectivesAreRight(communicator, 20'000,
                                                      {Algorithm::kRing, protocol, 2})) {
      return Fail("wrong sums, or failed: " + communicator->failure());
    }
  }
  return 0;
}

int Run(int rank, int n_ranks, const ncclUniqueId& id, const std::string& behaviour) {
  const auto made = InitCommunicator({.n_ranks = n_ranks, .rank = rank, .id = id});
  if (!made) return Fail(made.error().message);
  if (behaviour == "random") return RunRandom(*made);
  if (behaviour == "split") return RunSplit(*made);
  if (behaviour == "sums") return RunSums(*made);
  return RunFatal(*made, behaviour == "abort");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const int rank = std::atoi(argv[1]);
  const int n_ranks = std::atoi(argv[2]);
  ncclUniqueId id{};
  if (rank == 0) {
    const auto made = MakeUniqueId();
    if (!made) return Fail(made.error().message);
    id = *made;
    for (int other = 1; other < n_ranks; ++other) {
      if (::write(std::atoi(argv[4]), &id, sizeof(id)) != sizeof(id)) return Fail("write");
    }
  } else if (::close(std::atoi(argv[4])) != 0 || ::read(std::atoi(argv[3]), &id, sizeof(id)) != sizeof(id)) {
    return Fail("read");
  }
  return Run(rank, n_ranks, id, argv[5]);
}
