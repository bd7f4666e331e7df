// SPDX-License-Identifier: Apache-2.0
// A program that treats NCCL roughly. Its ranks are threads. One word names the test:
//   stressed_job <unused> <times> signals | fork | threads | hundred | abort | leave |
//                                 late | reopen <object>
// For "hundred" it prints "init <us>": the time that rank 0 took to make its communicators.
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "src/nccl_abi/host_stream.h"
#include "src/nccl_abi/nccl_api.h"

namespace {

void Require(bool true_here, const char* what) {
  if (true_here) return;
  std::fprintf(stderr, "stressed_job: %s\n", what);
  std::_Exit(4);
}
#define REQUIRE(condition) Require(condition, #condition)
#define REQUIRE_NCCL(call) Require((call) == ncclSuccess, #call)

ncclUniqueId NewId() {
  ncclUniqueId id{};
  REQUIRE_NCCL(ncclGetUniqueId(&id));
  return id;
}

// One rank's handle of a communicator, with its stream.
struct End {
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;

  End(const ncclUniqueId& id, int n_ranks, int rank) {
    REQUIRE_NCCL(hostcclStreamCreate(&stream));
    REQUIRE_NCCL(ncclCommInitRank(&comm, n_ranks, id, rank));
  }
  void Sum(int n_ranks, size_t count) const {
    std::vector<float> data(count, 1.0f);
    REQUIRE_NCCL(ncclAllReduce(data.data(), data.data(), count, ncclFloat32, ncclSum, comm, stream));
    REQUIRE_NCCL(hostcclStreamSynchronize(stream));
    REQUIRE(data[count - 1] == static_cast<float>(n_ranks));
  }
  void Close() const {
    REQUIRE_NCCL(ncclCommDestroy(comm));
    REQUIRE_NCCL(hostcclStreamDestroy(stream));
  }
};

template <typename Function>
void OnRanks(int n_ranks, Function function) {
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < n_ranks; ++rank) ranks.emplace_back(function, rank);
  for (std::thread& rank : ranks) rank.join();
}

std::atomic<int> g_signals{0};

// Runs calls under a signal of 10 kHz whose handler interrupts system calls.
void Signals(int times) {
  struct sigaction action {};
  action.sa_handler = [](int) { g_signals.fetch_add(1, std::memory_order_relaxed); };
  REQUIRE(::sigaction(SIGUSR1, &action, nullptr) == 0);
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGUSR1;
  timer_t timer{};
  REQUIRE(::timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
  const itimerspec every{{0, 100'000}, {0, 100'000}};
  REQUIRE(::timer_settime(timer, 0, &every, nullptr) == 0);
  const ncclUniqueId id = NewId();
  OnRanks(2, [&](int rank) {
    const End end(id, 2, rank);
    for (int i = 0; i < times; ++i) end.Sum(2, static_cast<size_t>(1 + i % 5000));
    end.Close();
  });
  // Waits for a first signal, in case the calls were too short for one.
  while (g_signals.load() == 0) std::this_thread::yield();
  REQUIRE(::timer_delete(timer) == 0);
}

// One rank forks while the other issues calls. Each child asks NCCL for its version and ends.
void Forks(int times) {
  const ncclUniqueId id = NewId();
  OnRanks(2, [&](int rank) {
    const End end(id, 2, rank);
    for (int i = 0; i < times; ++i) {
      const pid_t child = rank == 0 ? ::fork() : -1;
      int version = 0;
      if (child == 0) ::_exit(ncclGetVersion(&version) == ncclSuccess && version > 0 ? 0 : 5);
      end.Sum(2, static_cast<size_t>(1 + i));
      int status = 0;
      if (child > 0) REQUIRE(::waitpid(child, &status, 0) == child && status == 0);
    }
    end.Close();
  });
}

// Uses two communicators of four ranks, so eight handles, in four threads.
void Threads(int times) {
  const ncclUniqueId ids[2] = {NewId(), NewId()};
  OnRanks(4, [&](int rank) {
    const End ends[2] = {{ids[0], 4, rank}, {ids[1], 4, rank}};
    for (int i = 0; i < times; ++i) ends[i % 2].Sum(4, static_cast<size_t>(1 + i % 300));
    for (const End& end : ends) end.Close();
  });
}

void Hundred(int times) {
  std::vector<ncclUniqueId> ids;
  for (int i = 0; i < times; ++i) ids.push_back(NewId());
  std::atomic<int64_t> slower_us{0};
  OnRanks(2, [&](int rank) {
    const auto begin = std::chrono::steady_clock::now();
    std::vector<End> ends;
    for (const ncclUniqueId& id : ids) ends.emplace_back(id, 2, rank);
    const int64_t us =
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin)
            .count();
    if (rank == 0) slower_us = us;
    for (const End& end : ends) end.Sum(2, 10);
    for (const End& end : ends) end.Close();
  });
  std::printf("init %ld\n", static_cast<long>(slower_us.load()));
}

// Rank 0 waits in a call that rank 1 never makes. Another thread aborts the communicator.
void Abort(int times) {
  for (int i = 0; i < times; ++i) {
    const ncclUniqueId id = NewId();
    std::barrier issued(2);
    OnRanks(2, [&](int rank) {
      const End end(id, 2, rank);
      end.Sum(2, 100);
      std::vector<float> data(100000);
      if (rank == 0) {
        REQUIRE_NCCL(
            ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat32, ncclSum, end.comm, end.stream));
        std::thread watchdog([&] { REQUIRE_NCCL(ncclCommAbort(end.comm)); });
        watchdog.join();
        (void)hostcclStreamSynchronize(end.stream);
      }
      issued.arrive_and_wait();
      if (rank == 1) REQUIRE_NCCL(ncclCommAbort(end.comm));
      REQUIRE_NCCL(hostcclStreamDestroy(end.stream));
    });
  }
}

// Ends with all communicators and streams open.
void Leave(int times) {
  const ncclUniqueId id = NewId();
  OnRanks(2, [&](int rank) {
    static End* kept[2];
    kept[rank] = new End(id, 2, rank);
    for (int i = 0; i < times; ++i) kept[rank]->Sum(2, 1000);
  });
}

// Issues calls in a handler at the end of the process, when the thread's variables are already destroyed. The
// handler allocates their former memory, and nothing may write into it.
void Late(int times) {
  static const End end(NewId(), 1, 0);
  static const int rounds = times;
  for (int i = 0; i < times; ++i) end.Sum(1, 10);
  const auto at_the_end = [] {
    std::vector<std::vector<unsigned char>> others;
    for (size_t bytes = 16; bytes <= 4096; bytes += 16) {
      for (int i = 0; i < 8; ++i) others.emplace_back(bytes, 0x5a);
    }
    for (int i = 0; i < rounds; ++i) end.Sum(1, 10);
    for (const auto& other : others) {
      for (const unsigned char byte : other) REQUIRE(byte == 0x5a);
    }
  };
  REQUIRE(std::atexit(at_the_end) == 0);
}

// Opens and closes the object, and also makes and destroys communicators that use it as a plugin.
void Reopen(int times, const char* object) {
  for (int i = 0; i < times; ++i) {
    void* handle = ::dlopen(object, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(handle != nullptr && ::dlclose(handle) == 0);
    const End end(NewId(), 1, 0);
    end.Sum(1, 10);
    end.Close();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int times = std::atoi(argv[2]);
  const std::string how = argv[3];
  if (how == "signals") Signals(times);
  if (how == "fork") Forks(times);
  if (how == "threads") Threads(times);
  if (how == "hundred") Hundred(times);
  if (how == "abort") Abort(times);
  if (how == "leave") Leave(times);
  if (how == "late") Late(times);
  if (how == "reopen" && argc > 4) Reopen(times, argv[4]);
  return 0;
}
